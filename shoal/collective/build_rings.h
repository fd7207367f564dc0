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
#pragma once

#include <cstdint>
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
};

// Adds as a tree, but for one pass forward of one dimension with rank k at place k: `rotated`. Throws Error{invalid_argument}
// for a rank that is missing or there twice, and for passes that are no orders of the dimensions.
Program ring_program(std::string name, const Rings& rings);

// A ring of all members in this order; `both_ways`: half of the data in each direction.
Program ring_all_reduce(std::vector<std::uint32_t> order, bool both_ways = false);

// Rank x1 + p1 (x2 + p2 (...)) has coordinates x1, x2, ...: the first dimension varies fastest (of topo::Grid slowest). One that does not wrap, as of a
// mesh, is a ring, too: up by the even coordinates and back by the odd ones, so that the next is two links away at most and no link direction has two flows:
//
//     0 -> 2 -> 4 -> 5 -> 3 -> 1 -> 0
std::uint32_t folded(std::uint32_t place, std::uint32_t size);  // the coordinate at this place of such a ring
struct Dimension {
  std::uint32_t size = 1;
  bool wraps = true;
};
// `ranks` [number as above]: the rank there, where it is another.
Program grid_all_reduce(const std::vector<Dimension>& dimensions, std::vector<Pass> passes, const std::vector<std::uint32_t>& ranks = {});
// The two factors of `ranks` that are nearest to each other, the larger second; 1 and `ranks` where it is prime.
std::pair<std::uint32_t, std::uint32_t> nearest_factors(std::uint32_t ranks);

}  // namespace shoal::collective
