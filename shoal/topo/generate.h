// Networks of regular form. Hosts are called by their number from 0; switches as each form says. Every wire has its rate and
// latency in both directions. Pure functions; O(nodes + links).
//
// All throw Error{invalid_argument} for a rate that is not positive, a count of 0, and more than kMostNodes or kMostLinks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

struct Wire {
  double rate = 1;  // bytes/s each way, > 0
  Nanoseconds latency{0};
};

// Host i on wire i of the one switch "s".
Topology star(std::span<const Wire> hosts);

// Rack r: the switch "t_r" with hosts r * hosts .. r * hosts + hosts - 1, and an uplink to the switch "core".
// Oversubscribed hosts * wire.rate / uplink.rate to one.
Topology fat_tree(std::uint32_t racks, std::uint32_t hosts, Wire wire, Wire uplink);

// Site s: the switch "s_s" with its hosts. Every two sites have a line of their own.
Topology multi_site(std::uint32_t sites, std::uint32_t hosts, Wire wire, Wire line);

// Chips at integer coordinates, each linked with its neighbours in every dimension. A dimension that wraps links its last chip with
// its first; where it has fewer than three chips they are neighbours already. A host is called by its coordinates: "3_0".
struct Block {  // of dead chips
  std::vector<std::uint32_t> corner, extent;  // a number a dimension; extent >= 1, inside the grid
};
struct Grid {
  std::vector<std::uint32_t> sizes;  // 1 to 8 dimensions
  std::vector<bool> wraps;  // as many: all of a torus, none of a mesh
  Wire wire;
  std::vector<Block> dead;  // may overlap; at least one chip lives
};
Topology grid(const Grid& grid);

}  // namespace shoal::topo
