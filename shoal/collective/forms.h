// All-reduce for the form that a network has: what build_rings.h, build_mesh.h and build_trees.h make, where a topology is of the kind that they are for.
//
//     torus         a whole grid of any dimensions (topo/grid_form.h): rings along each, with the passes that load its links least
//     mesh_ring     a grid of two dimensions with dead chips or without: one circuit round them, both ways
//     row_pair      the same: rings of two rows, then along the columns
//     multi_ring    equally many hosts on every switch: rings inside, then between (Cho et al., "PowerAI DDL")
//     hierarchical  several hosts on a switch, of any numbers (hosts.h): inside first, at one of them for each part of the data, then between
//     ordered_ring  any network: one ring in the order that the rates of its links ask for
//
// Host i is rank i. Pure and deterministic: all members make the same of one topology.
#pragma once

#include <string>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

inline constexpr const char *kTorus = "torus", *kMeshRing = "mesh_ring", *kRowPair = "row_pair", *kMultiRing = "multi_ring",
                            *kHierarchical = "hierarchical", *kOrderedRing = "ordered_ring";
inline constexpr const char* kForms[] = {kTorus, kMeshRing, kRowPair, kMultiRing, kHierarchical, kOrderedRing};
bool is_form(const std::string& name);

// Throws Error{invalid_argument} with the reason where the network is of another form, or no form is called so.
Program build_for(const topo::Topology& topology, const std::string& form);
// All that fit, in the order of kForms; the hierarchical one of at most kMostExactHosts (certificate.h) hosts.
std::vector<Program> programs_of_form(const topo::Topology& topology);

// Hosts in a ring whose slowest step is as fast as can be found: for the greatest rate at which a bounded search finds a circuit of pairs, the
// nearest next host first. Of hosts beyond kMostExactHosts (certificate.h), as they are numbered. Pairs count by the slowest link of their way.
std::vector<std::uint32_t> order_by_rates(const topo::Topology& topology);

}  // namespace shoal::collective
