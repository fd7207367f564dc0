// Which links bytes take from one host to another: the fewest, through switches only where that is possible, else through hosts, too (chips that
// route). Of parallel links the fastest, as where a link's cost falls with its rate (OSPF, RFC 2328); the others stand by. Among equally short
// paths, and parallel links of one rate, the choice is by a hash of (from, to) at every hop, as equal-cost multi-path routing
// does (RFC 2992): a pair keeps to one path, as the one connection does that carries its bulk (net/tcp.h), and many pairs spread. Deterministic.
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
  // `by_switches`: not by a link from host to host, though there is one.
  std::vector<std::uint32_t> path(Node from, Node to, bool by_switches = false);

 private:
  using Distance = std::uint32_t;
  struct Distances {                    // [node]: links from the source
    std::vector<Distance> by_switches;  // where only switches pass on
    std::vector<Distance> by_all;       // where hosts do, too; empty until somebody asks
    std::vector<Distance> past_links;   // where only switches pass on and no link from host to host is taken; the same
  };

  enum class Through : std::uint8_t { switches, all, only_switches };
  std::vector<Distance> search(Node from, Through through) const;
  void walk_back(const std::vector<Distance>& distances, Through through, Node from, Node to, std::vector<std::uint32_t>& links) const;
  std::uint32_t chosen(std::vector<std::uint32_t> links, Node from, Node to, Node node) const;  // of equal ways that end in `node`
  bool is_host(Node node) const { return node < topology_.hosts.size(); }
  bool passes_on(Node node, Through through) const { return through == Through::all || !is_host(node); }
  bool may_take(const Link& link, Through through) const { return through != Through::only_switches || !is_host(link.from) || !is_host(link.to); }

  static constexpr std::size_t kMostDistances = std::size_t{1} << 25;  // 128 MiB

  const Topology& topology_;
  std::vector<std::uint32_t> first_in_, in_;    // links that end in a node: in_[first_in_[node] .. first_in_[node + 1])
  std::vector<std::uint32_t> first_out_, out_;  // and that begin there
  std::unordered_map<Node, Distances> known_;   // by source
};

}  // namespace shoal::topo
