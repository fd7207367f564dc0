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

#include "shoal/collective/certificate.h"
#include "shoal/collective/program.h"
#include "shoal/collective/program_cache.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

enum class Synthesis : std::uint8_t {
  few,  // at most 16 trees (from each host, where every rank owns a part), as few as come within 3 % of the bound
  exact,  // the bound itself, with as many trees as that takes; at most kMostExactHosts hosts (certificate.h)
  blink,  // as that paper does it: blink.h
};
const char* name(Synthesis how);  // "trees", "exact", "blink"

// Certified. Throws what PackingTask does (certificate.h), and Error{unsupported} for more hosts than `how` allows. Deterministic.
Program synthesize(const topo::Topology& topology, Collective collective, Synthesis how = Synthesis::few,
                   std::uint32_t root = 0);
// The same, taken from `cache` if it is there, and kept there.
Program kept_or_synthesized(const topo::Topology& topology, Collective collective, Synthesis how, std::uint32_t root,
                            const ProgramCache& cache);

}  // namespace shoal::collective
