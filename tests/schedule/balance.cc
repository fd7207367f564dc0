// Balance: all pieces are dealt, and no part has more than Graham's bound allows.
#include "shoal/schedule/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "shoal/core/seed.h"

namespace shoal::schedule {
namespace {

TEST(Balance, KeepsGrahamsBound) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::uint32_t pieces = 1 + random_words(seed, 0, 0, 0)[0] % 60, parts = 1 + random_words(seed, 0, 0, 1)[0] % 9;
    std::vector<double> costs(pieces);
    for (std::uint32_t i = 0; i < pieces; ++i) costs[i] = random_words(seed, 1, i, 0)[0] % 100;
    const std::vector<std::uint32_t> part_of = balance(costs, parts);
    ASSERT_EQ(part_of.size(), pieces);
    std::vector<double> loads(parts);
    for (std::uint32_t i = 0; i < pieces; ++i) loads.at(part_of[i]) += costs[i];
    // No schedule is better than the mean or the costliest piece; a list schedule is at most (2 - 1/parts) times as long.
    const double bound = std::max(std::accumulate(costs.begin(), costs.end(), 0.0) / parts, *std::ranges::max_element(costs));
    EXPECT_LE(*std::ranges::max_element(loads), bound * (2 - 1.0 / parts) + 1e-9);
    EXPECT_EQ(balance(costs, parts), part_of);
  }
}

TEST(Balance, PutsTheCostliestFirst) {
  EXPECT_EQ(balance(std::vector<double>{1, 5, 1, 1, 1, 1}, 2), (std::vector<std::uint32_t>{1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(balance(std::vector<double>{}, 3), std::vector<std::uint32_t>());
}

}  // namespace
}  // namespace shoal::schedule
