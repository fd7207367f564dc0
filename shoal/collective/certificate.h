// How fast a program is on one network beside what none can beat, with the proof of both. The bound is proved by prices of the network's arcs
// (packing/pack.h), which are checked by summing them up; the program's own rate by counting its ops on their routes (congestion.h). So a program out of
// a file need not be believed, and a slow one can not claim to be quick. Host i of the topology is rank i. Pure and deterministic.
#pragma once

#include <cstdint>
#include <optional>

#include "shoal/collective/program.h"
#include "shoal/packing/pack.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

// Beyond, a bound is proved but perhaps not met, and nothing is searched pair by pair.
inline constexpr std::uint32_t kMostExactHosts = 64;

// Nothing where no bound is known: gather, scatter, all_to_all.
std::optional<packing::Demand> demand_of(Collective collective);
bool has_bound(Collective collective);

// What is to be packed for a collective, checked. Throws Error{unsupported} for a collective without a bound and for more than kMaxRanks hosts,
// Error{invalid_argument} for a root that is no host and for a network of which one part cannot reach another.
struct PackingTask {
  PackingTask(const topo::Topology& topology, Collective collective, std::uint32_t root);

  packing::Demand demand;
  packing::Network network;
  std::uint32_t ranks, root;

  packing::Packing best() const;  // with the best bound that can be had: of at most kMostExactHosts hosts the exact one
  void check_searched(const char* mode) const;  // throws Error{unsupported} for more hosts than that
};

// Of a program of this network, by a packing's bound and prices.
Certificate certificate(const Program& program, const topo::Topology& topology, const packing::Packing& packing);
// Gives a program its certificate for this network, whoever made it. Throws as PackingTask does, and Error{invalid_argument} for another number of hosts.
void certify(Program& program, const topo::Topology& topology);

struct Proof {
  double bound = 0, rate = 0;  // of the data, in the topology's unit
  std::uint32_t busiest = 0;  // the link that is full at that rate
  double efficiency() const { return rate / bound; }
};
// Proved again from what the certificate names. Throws Error{invalid_argument} where a program has no certificate, has one for another topology, or
// does not hold what it claims.
Proof check_certificate(const Program& program, const topo::Topology& topology);

}  // namespace shoal::collective
