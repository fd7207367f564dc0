// Max-min fair rates of flows that share links: all grow alike until a link is full, whose flows then stay, and the others grow on
// (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2). What TCP flows of equal round trips come near to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::topo {

// capacity: of each link, > 0; paths: the links of each flow, at least one. Returns each flow's rate. O(links * (links + path lengths)).
std::vector<double> max_min(std::span<const double> capacity, std::span<const std::vector<std::uint32_t>> paths);

}  // namespace shoal::topo
