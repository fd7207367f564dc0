// All-reduce by rings, one after another: along one ring, or along those of each dimension of a grid of members.
//
// With sizes p1, p2, ... pd (the first dimension varies fastest): reduce-scatter along dimension 1, among the members that differ in
// that coordinate alone, then of what came to be each member's along dimension 2, ... and all-gather back. Bytes are those of one ring, 2(M-1)/M of the
// data; steps 2(p1-1 + ... + pd-1) instead of 2(M-1). M members at 2 x 3 places, reduce-scatter:
//
//     3 - 4 - 5     dimension 1: 0 1 2 and 3 4 5, a third of the data each
//     |   |   |     dimension 2: 0 3, 1 4 and 2 5, a sixth
//     0 - 1 - 2
//
// Cho et al., "PowerAI DDL" (arXiv 1708.02188), and "BlueConnect" (MLSys 2019): any factors. Ying et al. (arXiv 1811.06992) on tori: both
// directions, and passes that begin with another dimension each, so that every link is busy all the time.
//
// An open dimension has no link from its last place to its first. Where it is the last of a pass, as the long one of a multipod (Kumar et al., arXiv
// 2011.03641), nothing need be left divided behind it: members meet in the middle. Sums come there from both ends, shard after shard, and go back at once:
//
//     0 --> 1 --> 2 <-- 3 <-- 4        then        0 <-- 1 <-- 2 --> 3 --> 4
//
// Of what came to the dimension each link direction carries all, once: no sum over a line does with less, since either end's must cross each link. A ring folded along it
// (below) carries 2(p-1)/p of it; reduce-scatter and all-gather to and from every place along the line as much as this, but not at once, and over 2(p-1) hops where
// this takes p-1, p where p is even.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::collective {

// One way through the dimensions for an equal share of the data.
struct Pass {
  std::vector<std::uint32_t> order;  // of the dimensions, each once
  bool backward = false;             // to the place before, not the one behind
};
std::vector<Pass> one_pass(std::size_t dimensions);       // in the order of their numbers
std::vector<Pass> all_passes(std::size_t dimensions);     // both ways, beginning with each dimension: 2d, which load no link direction twice at once

struct Leaf {                        // a member outside the rings: hands its data to `host` first, and hears the result from there
  std::uint32_t rank = 0, host = 0;
};

struct Rings {
  std::vector<std::uint32_t> sizes;    // of the dimensions, each at least 1
  std::vector<std::uint32_t> members;  // the rank at each place x1 + p1 (x2 + p2 (...)); along each dimension a ring in the order of places
  std::vector<Leaf> leaves;            // members and leaves together are all ranks, each once; a host is a member
  std::vector<Pass> passes;
  std::vector<bool> open = {};         // [dimension]; empty: all close
};
// The dimension whose members meet in the middle: the last of the pass that has several, where it is open and has more than two.
std::optional<std::uint32_t> line_of(const Pass& pass, const std::vector<std::uint32_t>& sizes, const std::vector<bool>& open);

// Adds as a tree, but for one pass forward of one dimension with rank k at place k: `rotated`. Throws Error{invalid_argument}
// for a rank that is missing or there twice, and for passes that are no orders of the dimensions.
Program ring_program(std::string name, const Rings& rings);

// A ring of all members in this order; `both_ways`: half of the data in each direction.
Program ring_all_reduce(std::vector<std::uint32_t> order, bool both_ways = false);

// Rank x1 + p1 (x2 + p2 (...)) has coordinates x1, x2, ...: the first dimension varies fastest (of topo::Grid slowest). An open one that is not the last of a
// pass is a ring, too: up by the even coordinates and back by the odd ones, so that the next is two links away at most and no link direction has two flows:
//
//     0 -> 2 -> 4 -> 5 -> 3 -> 1 -> 0
std::uint32_t folded(std::uint32_t place, std::uint32_t size);    // the coordinate at this place of such a ring
std::uint32_t unfolded(std::uint32_t coordinate, std::uint32_t size);  // the place of this coordinate
struct Dimension {
  std::uint32_t size = 1;
  bool wraps = true;
};
// `ranks` [number as above]: the rank there, where it is another.
Program grid_all_reduce(const std::vector<Dimension>& dimensions, std::vector<Pass> passes, const std::vector<std::uint32_t>& ranks = {});
// The two factors of `ranks` that are nearest to each other, the larger second; 1 and `ranks` where it is prime.
std::pair<std::uint32_t, std::uint32_t> nearest_factors(std::uint32_t ranks);

}  // namespace shoal::collective
