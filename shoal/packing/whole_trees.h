// Whole units on trees: the second step of blink.h, internal to it.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/packing/pack.h"

namespace shoal::packing {

// How many units each candidate carries, [tree], so that they are most together and no arc has more than its rate: once, or any number
// of times. Branch and bound: trees in the order given, each as often as it fits and then less often; a branch ends where what is left cannot
// better the best, by the prices of `proof` (a tree costs at least as much as the cheapest there is) and by what still enters or leaves every host.
// Bounded work, after which the best so far counts. Deterministic.
std::vector<std::uint32_t> most_whole_trees(const Network& network, const Packing& proof, const std::vector<Tree>& candidates, double unit, bool once);

}  // namespace shoal::packing
