// The cheapest tree when every arc has a price: the question that both the exact search and the search for few trees ask.
//
// Hosts are joined by the cheapest ways through switches, or by the network's routes; a tree over hosts costs what its ways cost, so the cheapest
// tree of the network is the cheapest tree over these ways. One instance for each thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shoal/packing/tree.h"

namespace shoal::packing {

// Trees that must carry the same data: from one host, or (all_reduce) from whichever is best.
struct Origin {
  std::optional<Node> root;
  double share = 1;          // of all data
};
std::vector<Origin> origins(const Network& network, Demand demand, Node root);
std::uint32_t origin_of(const std::vector<Origin>& origins, const Tree& tree);  // whose data the tree carries

// Whether trees that go down the way they came up are as good as any: for all_reduce where both directions of every arc have one
// rate. Turned round, the best packing is as good, so some best prices are alike in both directions; under such prices the way
// up and the way down each cost at least a minimum spanning tree. One of those is found instead of 2 x hosts arborescences.
bool mirrored(const Network& network, Demand demand);

class CheapestTrees {
 public:
  CheapestTrees(const Network& network, Demand demand);
  ~CheapestTrees();

  // By arc, >= 0; where trees are mirrored what counts of an arc and its reverse is the sum. For the calls until the next one.
  void price(std::span<const double> prices);
  Tree cheapest(const Origin& origin) const;   // its rate is 0
  double cost(const Tree& tree) const;

 private:
  struct Ways;
  Tree spanning_tree() const;
  Tree spanning_tree_along_routes(std::span<const double> prices) const;
  double along_route(Node from, Node to, std::span<const double> prices) const;
  Tree arborescences(Node root) const;

  const Network& network_;
  const Demand demand_;
  const bool mirrored_;
  std::vector<double> prices_;
  std::unique_ptr<const Ways> ways_;
};

}  // namespace shoal::packing
