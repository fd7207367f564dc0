// Programs for a network by name, as `shoal program build --mode` and `shoal.program.build(network, mode=...)` take them.
//
//     trees, exact, blink   packed trees (synthesize.h)
//     torus, mesh_ring, ... what is made for a form of network (forms.h); "ring" of all_reduce is ordered_ring
//     direct, chain, ...    a builder's (build.h), in the order of ranks
//
// The quickest of them is sim/best_program.h's. Deterministic; share across threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/collective/program_cache.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

// Certified where that can be. A dash is an underscore. Those that are synthesized are kept in `cache`. Throws Error{invalid_argument} with the
// list, or why the network does not fit.
Program program_for(const topo::Topology& topology, Collective collective, const std::string& mode, std::uint32_t root = 0,
                    const ProgramCache& cache = {});

std::vector<std::string> mode_names(Collective collective);

}  // namespace shoal::collective
