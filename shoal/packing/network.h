// A topology as the search for trees sees it: parallel links are one arc, and every host can reach every other.
// A value; share across threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::packing {

using topo::Node;
inline constexpr std::uint32_t kNoArc = 0xffffffff;

struct Arc {
  Node from, to;
  double rate;            // of all links between the two in this direction, the topology's unit
  std::uint32_t reverse;  // the arc the other way, kNoArc if there is none
};

class Network {
 public:
  // Throws Error{invalid_argument}: no host, or a host that another cannot reach, naming both.
  explicit Network(const topo::Topology& topology);

  std::uint32_t hosts() const { return hosts_; }             // nodes 0 .. hosts-1; the others only forward
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  std::span<const Arc> arcs() const { return arcs_; }        // sorted by (from, to)
  std::span<const Arc> from(Node node) const { return std::span(arcs_).subspan(first_[node], first_[node + 1] - first_[node]); }
  std::uint32_t first(Node node) const { return first_[node]; }  // index of from(node)[0]
  std::uint32_t arc(Node from, Node to) const;               // its index; kNoArc if there is none
  bool is_host(Node node) const { return node < hosts_; }
  bool symmetric() const { return symmetric_; }              // every arc has a reverse of the same rate
  bool direct() const { return nodes() == hosts_; }          // no switch

  // The same network with every arc turned round: what is gathered there is spread here.
  Network turned() const;

 private:
  Network(std::uint32_t hosts, std::uint32_t nodes, std::vector<Arc> arcs);

  std::uint32_t hosts_;
  std::vector<Arc> arcs_;
  std::vector<std::uint32_t> first_;
  bool symmetric_ = true;
};

}  // namespace shoal::packing
