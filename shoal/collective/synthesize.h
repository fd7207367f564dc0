// Programs made for one network: as much as possible of what every link can carry, whatever the network looks like.
//
// A packing of trees (packing/pack.h) says how fast the collective can go at most and which trees go so fast. It chooses ways through switches, and
// bytes do not: they take topo::Routes. So trees get the rates that are best along those, and where that loses some, others are packed
// along them. Each tree becomes a chunk, its share being its rate. Host i of the topology is rank i.
//
//     topology -> pack -> along_routes -> trees with rates -> tree_program -> certificate
//
// Sources: Wang et al., "Blink" (MLSys 2020): trees packed into what links there are, few of them; Zhao et al., "ForestColl" (2024):
// all_gather and reduce_scatter by packed trees from every host. Blink's way up and down one tree is as good as any where links have
// one rate both ways (packing/cheapest.h); elsewhere up and down differ here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shoal/collective/program.h"
#include "shoal/collective/program_cache.h"
#include "shoal/packing/pack.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

enum class Synthesis : std::uint8_t {
  few,    // at most 16 trees (from each host, where every rank owns a part), as few as come within 3 % of the bound
  exact,  // the bound itself, with as many trees as that takes
  // As that paper does it (packing/blink.h), within 10 % of the bound: all_reduce, broadcast and reduce. all_reduce over several servers in three phases
  // (servers.h), where their links bear it as well.
  blink,
};
inline constexpr std::uint32_t kMostExactHosts = 64;  // beyond, a bound is proved but perhaps not met: exact and blink are refused

// all_reduce, broadcast, reduce, all_gather, reduce_scatter; others throw Error{unsupported}, as do more hosts than `how` allows.
// Throws Error{invalid_argument} for a network of which one part cannot reach another. Deterministic.
Program synthesize(const topo::Topology& topology, Collective collective, Synthesis how = Synthesis::few, std::uint32_t root = 0);
// The same, taken from `cache` if it is there, and kept there.
Program kept_or_synthesized(const topo::Topology& topology, Collective collective, Synthesis how, std::uint32_t root, const ProgramCache& cache);

// Two kinds of links at once that no tree mixes: those that lead straight from host to host (NVLinks), and ways through switches (PCIe, a network).
// Blink's hybrid (MLSys 2020, section 4): its trees packed into each kind by itself, the data split so that both end together (packing/channels.h)
// for `bytes` of them: a kind begins after the latencies of the longest way through its highest tree. Nothing where a kind does not lead from every
// host to every other, or would get no data; else throws as synthesize() for blink does.
std::optional<Program> hybrid(const topo::Topology& topology, Collective collective, std::uint32_t root, double bytes);

const char* name(Synthesis how);         // "trees", "exact", "blink"
std::optional<packing::Demand> demand_of(Collective collective);  // of those that synthesize() knows
bool has_bound(Collective collective);                            // whether it is one of them

// Gives a program its certificate for this network, whoever made it: synthesize() does so for its own. Hosts as ranks. Throws as
// synthesize() does.
void certify(Program& program, const topo::Topology& topology);

// The bound on any program for this collective here, proved again from the prices that the certificate names, and the program's own
// rate by its ops. Throws Error{invalid_argument} where a program has no certificate, has one for another topology, or does not hold what it claims.
struct Proof {
  double bound = 0, rate = 0;
  std::uint32_t busiest = 0;
  double efficiency() const { return rate / bound; }
};
Proof check_certificate(const Program& program, const topo::Topology& topology);

}  // namespace shoal::collective
