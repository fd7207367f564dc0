// What must hold of every packing, however it was found.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "shoal/packing/pack.h"

namespace shoal::packing {

inline bool spans(const Network& network, const Tree& tree, const std::vector<Hop>& hops, bool up) {
  std::vector<bool> has(network.hosts(), false);
  has[tree.root] = true;
  std::vector<Hop> order = hops;
  if (up) std::reverse(order.begin(), order.end());
  for (const Hop& hop : order) {
    const Node known = up ? hop.to : hop.from, next = up ? hop.from : hop.to;
    if (!has[known] || has[next]) return false;
    has[next] = true;
  }
  return std::all_of(has.begin(), has.end(), [](bool is) { return is; });
}

// What must hold of every packing: trees that span, arcs that are not overfilled, rates that add up, a bound that its prices prove.
inline void expect_sound(const Network& network, const Packing& packing, const std::string& what) {
  const auto from = origins(network, packing.demand, packing.root);
  std::vector<double> used(network.arcs().size(), 0), carried(from.size(), 0);
  for (const Tree& tree : packing.trees) {
    EXPECT_TRUE(!goes_up(packing.demand) || spans(network, tree, tree.up, true)) << what;
    EXPECT_TRUE(!goes_down(packing.demand) || spans(network, tree, tree.down, false)) << what;
    for (const auto& [arc, times] : load(network, tree)) used[arc] += times * tree.rate;
    carried[origin_of(from, tree)] += tree.rate;
  }
  for (std::size_t a = 0; a < used.size(); ++a) EXPECT_LE(used[a], network.arcs()[a].rate * (1 + 1e-9)) << what;
  for (std::size_t o = 0; o < from.size(); ++o) EXPECT_GE(carried[o], packing.rate * from[o].share * (1 - 1e-9)) << what;
  EXPECT_LE(packing.rate, packing.bound * (1 + 1e-9)) << what;
  EXPECT_NEAR(bound(network, packing.demand, packing.root, packing.prices), packing.bound, 1e-9 * packing.bound) << what;
}

}  // namespace shoal::packing
