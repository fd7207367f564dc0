// Which grid a topology is: generate.h's grid() backwards, whoever wrote the file.
//
// A chip's coordinates are its host's name ("3_0"), in any order of hosts. Where names are none, hosts count as numbered row by row, the
// last coordinate the fastest, and the first form of that kind whose links are exactly there is taken. Every link joins neighbours in
// one dimension, and every two live neighbours are linked both ways. Coordinates that no host has are dead chips. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

struct GridForm {
  static constexpr Node kDead = 0xffffffff;
  std::vector<std::uint32_t> sizes;  // of each dimension
  std::vector<bool> wraps;  // links lead from its last chips to its first; of a size of 3 and more
  std::vector<Node> chips;  // row by row: the host, or kDead
  bool is_whole() const;
};

// O(links), times how many products of sizes the hosts can be where names are no coordinates. Throws Error{invalid_argument} with why it is none.
GridForm grid_form(const Topology& topology);

// "3_0" -> {3, 0}; empty if the name is none of that kind.
std::vector<std::uint32_t> coordinates_in(const std::string& name);

}  // namespace shoal::topo
