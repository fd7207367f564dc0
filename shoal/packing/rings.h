// What a library of rings makes of a network: as many rings as there are over links of their own, and another kind of link where there is none.
//
// Such a library (NCCL) lays Hamiltonian cycles over the links between hosts, no link in two of them, each used both ways round. All links having one
// rate, of n hosts and k cycles
//
//     broadcast at 2 k links' rates,   all_reduce at 2 k n / (2 (n - 1)):   a ring moves 2 (n - 1) / n of the data over each of its links
//
// so a host with one link to spare leaves that idle, and one with a single link costs all others theirs. Trees need no cycle: that is what
// Blink gains (blink.h), most of it where k = 0. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/packing/network.h"

namespace shoal::packing {

inline constexpr std::uint32_t kMostRingHosts = 16;

// The most Hamiltonian cycles such that no link is in two, each as its hosts in order, from host 0; none where there is no cycle at all. Arcs are
// rate / unit links, rounded down, the lesser of the two directions. Exhaustive: a few milliseconds for 8 hosts.
// Throws Error{unsupported}: fewer than 3 hosts or more than 16, switches, or too many ways to try all of them.
std::vector<std::vector<Node>> most_rings(const Network& network, double unit = 1);

// Of k rings over n hosts as above, in links' rates. `fallback`: what there is beside the links (PCIe: 0.25 of an NVLink's), where k = 0.
struct RingRates {
  double broadcast = 0, all_reduce = 0;
};
RingRates ring_rates(std::uint32_t hosts, std::uint32_t rings, double fallback);

}  // namespace shoal::packing
