// What a program takes on a network that it has to itself, simulated, beside what none can beat.
#pragma once

#include <string>

#include "shoal/collective/program.h"
#include "shoal/sim/costs.h"
#include "shoal/topo/topology.h"

namespace shoal::sim {

struct ProgramPrice {
  double seconds = 0;
  double bound_seconds = 0;    // bytes / (the certificate's bound x goodput); 0 where there is no bound (gather, scatter, all_to_all)
  std::string bottleneck;      // "h3 > s"; empty without links
  double efficiency() const { return seconds > 0 ? bound_seconds / seconds : 1; }
};

// `bytes`: of the whole vector. A program without a certificate is given one. Throws Error{invalid_argument}: another number of ranks
// than hosts, relative rates, a certificate of another network, no number of bytes. The program must be one that verify() proves.
ProgramPrice price(collective::Program program, const topo::Topology& topology, double bytes, const Costs& costs = {});

// Throws Error{invalid_argument} for what is no number of bytes: negative, NaN, 10^18 and more.
void check_bytes(double bytes);

// Only how long it takes, whatever it is certified for.
double simulated_seconds(const collective::Program& program, const topo::Topology& topology, double bytes, const Costs& costs = {});

}  // namespace shoal::sim
