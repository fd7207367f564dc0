// Programs out of trees: each tree carries one chunk, up to its root, added on the way, and down from it. Chains, double binary trees
// and whatever a packing (packing/pack.h) comes to are trees; the shares of the chunks say how much goes which way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/packing/tree.h"

namespace shoal::collective {

struct DataTree {
  std::uint32_t root = 0;
  std::vector<std::uint32_t> up, down;   // [rank]: whom it sends its sum to, who tells it the result; unread at the root
  std::uint32_t share = 1;               // beside the other trees' (of one root, where every rank owns a part)
};
DataTree tree_of(const packing::Tree& packed, std::uint32_t ranks);  // host i as rank i; its share is to be set
std::uint32_t share_of(double part);                                 // of all data: in millionths or so, one at least
// The same of a packing, with shares: each tree's rate beside `all`, the rate of all data.
std::vector<DataTree> data_trees(const std::vector<packing::Tree>& packed, std::uint32_t ranks, double all);
double rate_of(const std::vector<packing::Tree>& packed);            // of all of them together

// all_reduce: both ways, any roots. broadcast, reduce: one way, from or to `root`. all_gather, reduce_scatter: one way, at least one tree
// at every rank. Sums are added tree by tree: at each rank its own first, then its children's by rank. Slices follow each other
// up and down, so a tall tree takes longer to begin, not to go on. Throws Error{invalid_argument} for what is no tree of all ranks.
Program tree_program(std::string name, Collective collective, std::uint32_t ranks, const std::vector<DataTree>& trees, std::uint32_t root = 0);

// Two binary trees, each half of the data: who has children in one is a leaf of the other, but for one member where N is odd, so that all
// send and receive as much as they can (Sanders, Speck and Träff, Parallel Computing 35, 2009). Heights about log2 N.
std::vector<DataTree> double_binary_trees(std::uint32_t ranks);

// Groups of members that are near each other, of any sizes: `group_of` numbers each rank's, from 0 on. Each part of the data is summed within every
// group at one member, which differs from part to part, then across the groups at one of those, and goes back the same way: 4 steps. Wang et al.,
// "Blink" (MLSys 2020), three phases. Throws Error{invalid_argument} for an empty group, or more than 2^20 transfers one way.
Program hierarchical_all_reduce(const std::vector<std::uint32_t>& group_of);

}  // namespace shoal::collective
