// Packings of trees into a network: how fast a collective can go at most, and the trees that go so fast.
//
//     maximise  rate   subject to   for every origin o:  the rates of its trees are at least  share_o * rate
//                                   for every arc a:     sum over trees of rate * times it takes a  <=  rate_a
//
// Prices y_a >= 0 of the arcs prove a bound: every byte of the data needs a tree from each origin for its share, so
//
//     rate  <=  sum_a y_a rate_a  /  sum_o share_o * (cost of o's cheapest tree under y)
//
// For broadcast the best bound is the smallest cut (Edmonds 1973), for all_reduce in a symmetric network without switches the
// smallest (capacity that crosses a partition) / (parts - 1) (Tutte and Nash-Williams 1961). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/packing/cheapest.h"

namespace shoal::packing {

struct Packing {
  Demand demand = Demand::all_reduce;
  Node root = 0;
  std::vector<Tree> trees;      // by falling rate
  double rate = 0;              // of the data, in the topology's unit: seconds = data / rate
  double bound = 0;             // no schedule has a higher rate
  std::vector<double> prices;   // by arc: the proof of the bound
  double efficiency() const { return rate / bound; }
};

// The bound that these prices prove (above).
double bound(const Network& network, Demand demand, Node root, const std::vector<double>& prices);

// The highest rate of trees of these shapes, whatever their rates were: they are given the best, those of rate 0 dropped. The prices are those
// under which none of these trees is too dear, and prove nothing of others; no bound.
Packing best_rates(const Network& network, Demand demand, Node root, std::vector<Tree> trees);

// Equal prices parted by a hair, differently in each round, or the same of many equal trees would be the cheapest again and again.
std::vector<double> parted(const Network& network, const std::vector<double>& prices, std::uint64_t round);

// Column generation: the linear programme over some trees, whose prices find the cheapest tree there is, which joins them,
// until none would improve it: efficiency 1 - 1e-6. At most as many trees as the network has arcs. `known`: trees to begin with.
// Along routes that do not come back as they went, where a round takes arborescences of every host, rounds are counted: some seconds of an idle core.
Packing pack_exactly(const Network& network, Demand demand, Node root = 0, const std::vector<Tree>& known = {});

// At most 16 trees for each origin, as few as come within 3 % of the bound, else the best found. Trees of one size are moved one
// at a time to where the network is least busy (prices that rise steeply with load), then get their best rates. Where that falls short and one
// origin has all data, trees are swapped for such as the prices of the full arcs ask for.
// `exact`: where it is known; its bound is taken, else a rough one from arcs alone, and nothing is swapped.
Packing pack_few(const Network& network, Demand demand, Node root, const Packing* exact = nullptr);

// The last step of that by itself: at most 16 trees of one origin, some of them swapped until they come within 3 % of the bound that `best` has.
Packing swapped(const Network& network, Packing best);

// What a packing whose ways were free comes to along routes (Network::along_routes): its trees get their best rates for where their bytes go. Where that is less
// than it claims, and `search` allows, trees are packed along the routes themselves, at most 16 for each origin if `few`; then, and only then, it
// has a bound, that of all trees along routes.
Packing along_routes(const topo::Topology& topology, const Packing& claimed, bool few, bool search);

}  // namespace shoal::packing
