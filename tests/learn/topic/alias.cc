// Alias tables draw with the probabilities that they tell, and those are what the weights say.
#include "shoal/learn/topic/alias.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "shoal/core/seed.h"

namespace shoal::learn::topic {
namespace {

// Every bin at every hundredth of its height: counts and probabilities are equal up to a hundredth of a bin at each end of each part.
void expect_probabilities(const std::vector<double>& weights) {
  Alias alias;
  alias.build(std::vector<double>(3, 1.0));  // another table was there before
  alias.build(weights);
  constexpr std::uint64_t parts = 100;
  const std::uint64_t bins = weights.size();
  std::vector<double> drawn(bins), pieces(bins);
  for (std::uint64_t bin = 0; bin < bins; ++bin) {
    std::uint32_t before = UINT32_MAX;
    for (std::uint64_t part = 0; part < parts; ++part) {
      const std::uint64_t high = ((bin << 32) + bins - 1) / bins, low = (part << 32) / parts;
      const std::uint32_t i = alias.draw(high << 32 | low);
      ASSERT_LT(i, bins);
      drawn[i] += 1.0 / static_cast<double>(parts * bins);
      pieces[i] += i != before;
      before = i;
    }
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double all = 0;
  for (std::uint32_t i = 0; i < bins; ++i) {
    EXPECT_NEAR(alias.probability(i), weights[i] / sum, 1e-8) << i;
    EXPECT_NEAR(alias.probability(i), drawn[i], (pieces[i] + 1) / static_cast<double>(parts * bins)) << i;
    if (weights[i] == 0) {
      EXPECT_EQ(drawn[i], 0) << i;
    }
    all += alias.probability(i);
  }
  EXPECT_NEAR(all, 1, 1e-12);
}

TEST(Alias, DrawsWithTheProbabilitiesThatItTells) {
  expect_probabilities({2.5});
  expect_probabilities({1, 0});
  expect_probabilities({1, 1, 1, 1});
  expect_probabilities({1e-12, 5, 1e12, 3});
  for (const std::uint32_t size : {2u, 3u, 17u, 1000u}) {
    std::vector<double> weights(size);
    for (std::uint32_t i = 0; i < size; ++i) weights[i] = i % 5 == 1 ? 0 : 1 / (0.01 + uniform(1, size, i, 0));
    expect_probabilities(weights);
  }
}

}  // namespace
}  // namespace shoal::learn::topic
