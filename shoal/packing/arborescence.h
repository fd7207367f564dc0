// The cheapest way to reach every node of a graph from one of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::packing {

struct WeightedArc {
  std::uint32_t from, to;
  double cost;            // >= 0
};

// Minimum-cost arborescence out of `root` (Chu and Liu 1965, Edmonds 1967: take each node's cheapest entry, contract the cycles
// that makes, repeat; one cycle at a time along a path, of parallel arcs the cheapest, as Tarjan, Networks 7, 1977, has it for dense
// graphs): for each node but the root the arc by which it is entered, [node], root's entry unspecified. Every node must be reachable.
// O(arcs + nodes^2). Pure.
std::vector<std::uint32_t> cheapest_arborescence(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs);

}  // namespace shoal::packing
