// Which links a transfer takes: the fewest, through switches only where that is possible, else through hosts, too (chips that
// route). Among equally short paths the choice is by a hash of (from, to, stream) at every hop, as equal-cost multi-path routing
// does (RFC 2992): one stream keeps to one path, many spread. Deterministic.
//
// Hosts that are neighbours need no search. Else one breadth-first search a source, O(nodes + links), whose distances are kept
// while they fit in kMostDistances; so 4,096 hosts of which each speaks to few cost little.
// Lifetime: refers to the topology, whose links stay as they are. Threads: one at a time.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

class Routes {
 public:
  explicit Routes(const Topology& topology);

  // Indices into topology.links, from `from` to `to` in order; empty where both are one node. `from` and `to` are hosts or
  // switches. Throws Error{invalid_argument} naming both where no path exists.
  std::vector<std::uint32_t> path(Node from, Node to, std::uint64_t stream = 0);

 private:
  using Distance = std::uint32_t;
  struct Distances {                    // [node]: links from the source
    std::vector<Distance> by_switches;  // where only switches pass on
    std::vector<Distance> by_all;       // where hosts do, too; empty until somebody asks
  };

  std::vector<Distance> search(Node from, bool through_hosts) const;
  void walk_back(const std::vector<Distance>& distances, bool through_hosts, Node from, Node to, std::uint64_t stream,
                 std::vector<std::uint32_t>& links) const;
  bool passes_on(Node node, bool through_hosts) const { return through_hosts || node >= topology_.hosts.size(); }

  static constexpr std::size_t kMostDistances = std::size_t{1} << 25;  // 128 MiB

  const Topology& topology_;
  std::vector<std::uint32_t> first_in_, in_;    // links that end in a node: in_[first_in_[node] .. first_in_[node + 1])
  std::vector<std::uint32_t> first_out_, out_;  // and that begin there
  std::unordered_map<Node, Distances> known_;   // by source
};

}  // namespace shoal::topo
