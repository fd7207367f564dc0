#include "shoal/packing/arborescence.h"

#include <gtest/gtest.h>

#include <limits>

#include "shoal/core/seed.h"

namespace shoal::packing {
namespace {

bool reaches_all(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs, const std::vector<std::uint32_t>& entry) {
  for (std::uint32_t start = 0; start < nodes; ++start) {
    std::uint32_t at = start;
    for (std::uint32_t steps = 0; at != root; ++steps) {
      if (steps == nodes || arcs[entry[at]].to != at) return false;
      at = arcs[entry[at]].from;
    }
  }
  return true;
}

double cost(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs, const std::vector<std::uint32_t>& entry) {
  double sum = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) sum += node == root ? 0 : arcs[entry[node]].cost;
  return sum;
}

// Every choice of one entry a node; infinite if none reaches all.
double least_by_trying(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs) {
  std::vector<std::uint32_t> entry(nodes, 0);
  double least = std::numeric_limits<double>::infinity();
  const auto choose = [&](auto& self, std::uint32_t node) -> void {
    if (node == nodes) {
      if (reaches_all(nodes, root, arcs, entry)) least = std::min(least, cost(nodes, root, arcs, entry));
      return;
    }
    if (node == root) return self(self, node + 1);
    for (std::uint32_t a = 0; a < arcs.size(); ++a) {
      if (arcs[a].to == node) entry[node] = a, self(self, node + 1);
    }
  };
  choose(choose, 0);
  return least;
}

// Goal: the cheapest one, contractions included. Method: random graphs of small whole costs, so that ties abound. Oracle: all of them.
TEST(Arborescence, is_as_cheap_as_the_cheapest_of_all) {
  std::uint32_t tried = 0;
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    auto draw = [&, k = 0U](std::uint32_t below) mutable { return random_words(seed, 0, k++, 1)[0] % below; };
    const std::uint32_t nodes = 1 + draw(6), root = draw(nodes);
    std::vector<WeightedArc> arcs;
    for (std::uint32_t k = nodes + draw(3 * nodes); k > 0; --k) arcs.push_back({draw(nodes), draw(nodes), static_cast<double>(draw(6))});
    const double least = least_by_trying(nodes, root, arcs);
    if (least == std::numeric_limits<double>::infinity()) continue;
    ++tried;
    const auto entry = cheapest_arborescence(nodes, root, arcs);
    ASSERT_TRUE(reaches_all(nodes, root, arcs, entry)) << "seed " << seed;
    EXPECT_EQ(cost(nodes, root, arcs, entry), least) << "seed " << seed;
  }
  EXPECT_GT(tried, 300U);
}

}  // namespace
}  // namespace shoal::packing
