// Programs out of trees: each tree carries one chunk, up to its root, added on the way, and down from it. Chains, double binary trees
// and whatever a packing (packing/pack.h) comes to are trees; the shares of the chunks say how much goes which way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

struct DataTree {
  std::uint32_t root = 0;
  std::vector<std::uint32_t> up, down;   // [rank]: whom it sends its sum to, who tells it the result; unread at the root
  std::uint32_t share = 1;               // beside the other trees' (of one root, where every rank owns a part)
};

// all_reduce: both ways, any roots. broadcast, reduce: one way, from or to `root`. all_gather, reduce_scatter: one way, at least one tree
// at every rank. Sums are added tree by tree: at each rank its own first, then its children's by rank. Slices follow each other
// up and down, so a tall tree takes longer to begin, not to go on. Throws Error{invalid_argument} for what is no tree of all ranks.
Program tree_program(std::string name, Collective collective, std::uint32_t ranks, const std::vector<DataTree>& trees, std::uint32_t root = 0);

}  // namespace shoal::collective
