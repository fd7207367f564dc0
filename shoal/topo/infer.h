// Which network explains what was measured: hosts on a tree of switches, or each pair with a line of its own. Pure: whoever measures
// is passed in (collective/probe_together.h for live members, a fluid model in the tests), and the same figures give the same bits, so
// that every member may draw the same conclusion from figures that all have.
//
// What is asked, N hosts: one to all and all to one (N rounds each) give each host's own link. All to all (one round) and N-1 matchings
// are compared with what the network found so far would give, at first a single switch: pairs behind a shared bottleneck get less,
// those beside each other no less. Hosts are joined by average linkage of these ratios; a group above a wide gap is confirmed by two
// rounds, the group to the others and back, and the one that gets least of what it should becomes a switch with an uplink of that
// rate. So on until all is explained; then the same inside each group. On every level of switches that is about 3 N rounds, and
// two for each group that is tried; the tests' networks of one level with G groups take at most 5 N + 4 G.
//
// What never limits is not found: a rack whose uplink carries all that its hosts send looks like the core. Where both sides of a
// bottleneck are one group, it is one link between two switches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

struct Flow {
  std::uint32_t from = 0, to = 0;  // hosts
};
// The rates, in bytes/s, of flows that run at the same time, each as fast as the network lets it.
using Together = std::function<std::vector<double>(std::span<const Flow>)>;

struct PairsAlone {  // each ordered pair while nobody else sends; [from * hosts + to], the diagonal unused
  std::vector<double> rate;  // bytes/s, > 0
  std::vector<double> latency;  // seconds one way, >= 0
};

inline constexpr std::size_t kMostInferred = 256;  // hosts
inline constexpr double kSlower = 0.85;  // of what the model says, and less, is another network

// hosts: unequal names. Throws Error{invalid_argument} for more than kMostInferred hosts, figures of another number of hosts or rates of
// another number of flows, and those that are none (finite, > 0), and what `together` throws.
Topology infer(const std::vector<std::string>& hosts, const PairsAlone& alone, const Together& together);

}  // namespace shoal::topo
