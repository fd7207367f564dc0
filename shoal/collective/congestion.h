// What a program comes to on a network where little but links' rates counts: what closed-form prices (select.h) and the efficiency of a program
// are made of. Transfers take topo::Routes. Pure functions; members are the topology's hosts, and Error{invalid_argument} is thrown where two that
// speak to each other are in different pieces of it.
#pragma once

#include <cstdint>

#include "shoal/collective/program.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

// Which link is busiest, and for how long. Waits between ops are not seen (sim/ sees them), so that it is exact for what is pipelined, as trees are,
// and for what loads the same links all the time, as one ring does.
struct Congestion {
  std::uint32_t busiest = 0;                 // a link of the topology
  double rate = 0;                           // of the data: bytes/s (or the topology's unit) at which that link is full
};
Congestion congestion(const Program& program, const topo::Topology& topology);

// The same for programs in phases, as rings along one dimension after another are, whose links are not all full all the while. Whole chunks are moved:
// a send begins when its data are there and it is its turn in its lane and in its receiver's, takes its place behind what came to each link of its way before
// it, and is done when the last of them has carried it. Right where a phase waits for whole chunks; what passes on the first slice of a chunk
// before it has the last (trees, a chain) takes less.
struct Course {
  std::uint32_t steps = 0;                   // messages one after another before the first result is everywhere
  double rate = 0;                           // of the data, as above; never more than that of congestion()
  double added = 0;                          // by the busiest member, in whole vectors
  double chunk = 0;                          // the part of all data that the largest chunk is
};
Course course(const Program& program, const topo::Topology& topology);

// The rate of the data in what is pipelined, where it meets itself in links. Slices of a chunk are on all hops of its way at once, so that these have one pace;
// hops that meet in a link share it evenly (max-min, as TCP's flows do: topo/fair_shares.h), whatever the sizes of their chunks, and a chunk that has ended leaves
// its share to the others. So the largest chunk ends last, and may not fill a link alone. Of one chunk, and where all end together, that of congestion();
// never more, to rounding.
double even_rate(const Program& program, const topo::Topology& topology);

}  // namespace shoal::collective
