// A topology as the search for trees sees it: every host can reach every other. A value; share across threads.
//
// Ways are free at first: a hop chooses its switches, and parallel links are one arc. That is what nothing can beat, and what bounds are proved on.
// Bytes are not free: what one host sends to another takes the way of topo::Routes, as one connection does. along_routes() is the network as they see it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::packing {

using topo::Node;
inline constexpr std::uint32_t kNoArc = 0xffffffff;

struct Arc {
  Node from, to;
  double rate;            // of all links between the two in this direction, the topology's unit; along routes of one link
  std::uint32_t reverse;  // the arc the other way, kNoArc if there is none
};

class Network {
 public:
  // Throws Error{invalid_argument}: no host, or a host that another cannot reach, naming both.
  explicit Network(const topo::Topology& topology);
  // Each link an arc of its own, and between two hosts one way, whatever a hop's `via` says. `pairs`: those whose ways are asked for, where not all are.
  static Network along_routes(const topo::Topology& topology);
  static Network along_routes(const topo::Topology& topology, const std::vector<std::pair<Node, Node>>& pairs);

  std::uint32_t hosts() const { return hosts_; }             // nodes 0 .. hosts-1; the others only forward
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  std::span<const Arc> arcs() const { return arcs_; }        // sorted by (from, to)
  std::span<const Arc> from(Node node) const { return std::span(arcs_).subspan(first_[node], first_[node + 1] - first_[node]); }
  std::uint32_t first(Node node) const { return first_[node]; }  // index of from(node)[0]
  std::uint32_t arc(Node from, Node to) const;               // its index; kNoArc if there is none
  bool has_routes() const { return !routes_.empty(); }
  std::span<const std::uint32_t> route(Node from, Node to) const { return routes_.at(pair(from, to)); }  // arcs between two hosts whose way was asked for
  bool is_host(Node node) const { return node < hosts_; }
  bool symmetric() const { return symmetric_; }              // every arc has a reverse of the same rate, and every route comes back as it went
  bool direct() const { return nodes() == hosts_; }          // no switch

  // The same network with every arc turned round: what is gathered there is spread here.
  Network turned() const;

 private:
  Network(std::uint32_t hosts, std::uint32_t nodes, std::vector<Arc> arcs);
  static std::uint64_t pair(Node from, Node to) { return std::uint64_t{from} << 32 | to; }

  std::uint32_t hosts_;
  std::vector<Arc> arcs_;
  std::vector<std::uint32_t> first_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> routes_;  // by pair; empty where ways are free
  bool symmetric_ = true;
};

}  // namespace shoal::packing
