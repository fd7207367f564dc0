// All-reduce over several servers in Blink's three phases (Wang et al., MLSys 2020, section 3.5): each server adds inside, along trees packed into its
// own links; the roots of one part's trees add between servers, each server's root a share of the part, in one hop; results go down the same trees.
// Slices follow each other through all three, so that they overlap. Servers may be of unequal sizes and have unlike trees:
//
//     server 0   trees of rates 2, 1      |----- 2/3 -----|- 1/3 -|
//     server 1   trees of rates 1, 1      |--- 1/2 ---|--- 1/2 ---|      parts of the data: 1/2, 1/6, 1/3, each with one tree of every server
//
// Pure and deterministic.
#pragma once

#include <vector>

#include "shoal/collective/build_trees.h"
#include "shoal/collective/hosts.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

// What is left together where the necks (topo/facts.h) are cut: connections that give the hosts behind them less than their own links do; where there
// are none, hosts_in(). [rank]: its server.
Hosts servers_in(const topo::Topology& topology);

// The trees of the three phases, for tree_program(); roots take turns where links are equal both ways. At most kMostExactHosts hosts. Throws
// Error{invalid_argument} where there are no several servers, or one of them is in two pieces by itself.
std::vector<DataTree> three_phases(const topo::Topology& topology);

}  // namespace shoal::collective
