// A program drawn, as one SVG: a panel for each chunk, the biggest first, at most 16 of them. Where a chunk goes up to one rank and down from it, a tree
// with that rank on top; where all that is sent goes round one circle, that circle, once for all chunks; else its ranks on a circle. What
// is added on the way is drawn in the colour of slow links, results in that of hosts.
#pragma once

#include <string>

#include "shoal/collective/program.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

inline constexpr std::uint32_t kMostDrawnRanks = 256;

// `program` is one that verify() lets through; with a topology, ranks have the names of its hosts and chunks the rates at which they flow there.
// Deterministic. Throws Error{unsupported}: more ranks, or more ops than verify() unrolls; Error{invalid_argument}: a topology of other hosts.
std::string to_svg(const Program& program, const topo::Topology* topology = nullptr);

}  // namespace shoal::collective
