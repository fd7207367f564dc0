// A topology as one SVG: nothing outside it is needed, and it follows the reader's light or dark colours. Hosts are discs, switches are
// squares; a line is as wide as its rate, in steps, and the slowest ones stand out; what there is of each rate is told below.
#pragma once

#include <string>

#include "shoal/topo/topology.h"

namespace shoal::topo {

// Deterministic. Throws Error{invalid_argument} where layout() does.
std::string to_svg(const Topology& topology);

}  // namespace shoal::topo
