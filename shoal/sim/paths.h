// Ways of bytes between hosts, as links of a kernel: those of the topology that its routes take, and at both ends the hosts' threads, where bytes
// cost these time. Lifetime: refers to the topology. Threads: one at a time.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shoal/sim/costs.h"
#include "shoal/topo/routes.h"
#include "shoal/topo/topology.h"

namespace shoal::sim {

struct Path {
  std::vector<std::uint32_t> links;  // of the kernel, in order
  double latency = 0;                // seconds
};

class Paths {
 public:
  Paths(const topo::Topology& topology, const Costs& costs);

  // Of the kernel's links, in bytes/s: the topology's by their numbers there, and behind them the threads, by host, where there are any.
  std::vector<double> capacities() const;
  bool has_threads() const { return costs_.host_seconds_per_byte > 0; }
  std::uint32_t thread(topo::Node host) const { return static_cast<std::uint32_t>(topology_.links.size()) + host; }
  double thread_capacity(double slowness) const { return 1 / (costs_.host_seconds_per_byte * slowness); }

  // Stays where it is. Throws Error{invalid_argument} where there is no way.
  const Path& between(topo::Node from, topo::Node to, bool by_switches = false);

 private:
  const topo::Topology& topology_;
  const Costs costs_;
  topo::Routes routes_;
  std::unordered_map<std::uint64_t, Path> paths_;
};

}  // namespace shoal::sim
