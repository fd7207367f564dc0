// What the verbs of `shoal topo` share.
#pragma once

#include <memory>
#include <string>

#include "app/command.h"
#include "shoal/topo/topology.h"

namespace shoal::app {

std::string counts(const topo::Topology& topology);  // "16 hosts, 5 switches, 40 links"
std::string to_text(const topo::Topology& topology); // what `show` says

Action declare_topo_probe(CLI::App& app);

}  // namespace shoal::app
