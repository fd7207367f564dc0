// Programs as Blink makes them (Wang et al., MLSys 2020), to be had by name and compared with ours (synthesize.h): its packing of trees
// (packing/blink.h), its three phases over several servers (three_phases.h), and its hybrid of two kinds of links. all_reduce, broadcast and reduce of at
// most kMostExactHosts hosts (certificate.h); more throw Error{unsupported}, and what PackingTask throws. Host i is rank i; certified. Deterministic.
#pragma once

#include <cstdint>
#include <optional>

#include "shoal/collective/program.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

inline constexpr const char* kBlink = "blink";

// Trees within 10 % of the bound: "blink". all_reduce over several servers in three phases, where their links bear it as well: "blink_servers".
Program blink_program(const topo::Topology& topology, Collective collective, std::uint32_t root = 0);

// Two kinds of links at once that no tree mixes: those that lead straight from host to host (NVLinks), and ways through switches (PCIe, a network).
// Section 4: its trees packed into each kind by itself, the data split so that both end together (packing/channels.h) for `bytes` of
// them: a kind begins after the latencies of the longest way through its highest tree. Nothing where a kind does not lead from every host to every
// other, or would get no data.
std::optional<Program> blink_hybrid(const topo::Topology& topology, Collective collective, std::uint32_t root, double bytes);

}  // namespace shoal::collective
