// Which nodes reach each other, along links in either direction. O(nodes + links).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

struct Components {
  std::vector<std::uint32_t> of;                // by node: its component
  std::vector<std::vector<Node>> hosts;         // by component, ascending; the one with most hosts first
};
Components components(const Topology& topology);

// "2 components: 5 hosts (a, b, c, ...), 1 host (z)"; for notes and error lines.
std::string describe(const Components& components, const Topology& topology);

}  // namespace shoal::topo
