// Hosts on a tree of switches while it is being found (infer.h): every node but the root has one link to its parent, with a rate up
// and a rate down.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shoal/topo/infer.h"
#include "shoal/topo/topology.h"

namespace shoal::topo {

class SwitchTree {
 public:
  SwitchTree() = default;
  // Host i on the root, with up[i] bytes/s towards it and down[i] from it.
  SwitchTree(const std::vector<double>& up, const std::vector<double>& down);

  std::uint32_t root() const { return hosts_; }
  std::uint32_t parent(std::uint32_t node) const { return nodes_[node].parent; }
  // Hangs `hosts`, which hang on `parent`, on a new switch below it. Returns the switch.
  std::uint32_t gather(std::span<const std::uint32_t> hosts, std::uint32_t parent, double up, double down);

  // Max-min fair rates of flows that run at the same time.
  std::vector<double> rates(std::span<const Flow> flows) const;

  // Gives every link the latency by which the paths come nearest to latency(a, b), in seconds: of three nodes below one switch
  // with distances ab, ac and bc between them, a's own is (ab + ac - bc) / 2; the median over all such b and c.
  void fit_latencies(const std::function<double(std::uint32_t, std::uint32_t)>& latency);

  Topology to_topology(const std::vector<std::string>& hosts) const;

 private:
  struct Up {
    std::uint32_t parent = 0;
    double up = 0, down = 0;  // bytes/s
    double latency = 0;  // seconds
  };
  std::vector<std::uint32_t> way_up(std::uint32_t node) const;  // the node, its parent, ... up to below the root

  std::uint32_t hosts_ = 0;
  std::vector<Up> nodes_;  // hosts, the root, the other switches: each after its parent but for hosts
};

}  // namespace shoal::topo
