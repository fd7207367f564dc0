// What the verbs of `shoal topo` share.
#pragma once

#include <string>

#include "shoal/topo/topology.h"

namespace shoal::app {

std::string counts(const topo::Topology& topology);  // "16 hosts, 5 switches, 40 links"

}  // namespace shoal::app
