// One tree of a packing: hosts, and the way from each to the next. Values; share across threads.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "shoal/packing/network.h"

namespace shoal::packing {

// What is to be spread or added. In this room the data flow as a liquid: trees carry shares of them, at a rate.
enum class Demand : std::uint8_t {
  all_reduce,      // up a tree to its root, whole, then down a tree to all
  broadcast,       // down trees from one root
  reduce,          // up trees to one root
  all_gather,      // down trees from every host, each having an equal part
  reduce_scatter,  // up trees to every host
};
const char* name(Demand demand);
bool goes_up(Demand demand);
bool goes_down(Demand demand);

struct Hop {              // from host to host
  Node from, to;
  std::vector<Node> via;  // switches that are passed
  bool operator==(const Hop&) const = default;
};

// visit(arc) for each arc of the way: the hop's own, or the network's where that has routes.
template <typename Visit>
void along(const Network& network, const Hop& hop, Visit visit) {
  if (network.has_routes()) {
    for (const std::uint32_t arc : network.route(hop.from, hop.to)) visit(arc);
    return;
  }
  Node at = hop.from;
  for (const Node next : hop.via) visit(network.arc(std::exchange(at, next), next));
  visit(network.arc(at, hop.to));
}

struct Tree {
  Node root = 0;
  std::vector<Hop> up;    // every other host once as `from`, after those whose data it passes on; empty where nothing goes up
  std::vector<Hop> down;  // every other host once as `to`, after the one that tells it; empty where nothing goes down
  double rate = 0;        // of the data that go this way, in the topology's unit
};

// How often the tree takes each arc, up and down together: (arc, times), ascending, times > 0. A switch does not multiply what
// passes it, so a hop that goes where another went counts again. The tree's hops must follow the network's arcs.
using Load = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
Load load(const Network& network, const Tree& tree);

std::uint32_t height(const Tree& tree);  // hops between the root and the farthest host, the longer of up and down

// The hops of a tree as `up` and `down` have them, from how each host but the root is left (up) or entered: [host].
std::vector<Hop> in_order(const std::vector<Hop>& of_hosts, Node root, bool up);
// Ways that are the same in both directions, as a tree with its root where it is lowest; `up` and `down` go the same way.
Tree centred(std::uint32_t hosts, const std::vector<Hop>& edges);
// The tree that `out` makes when each hop is turned round: what was told down is gathered up.
std::vector<Hop> turned(const std::vector<Hop>& out);

}  // namespace shoal::packing
