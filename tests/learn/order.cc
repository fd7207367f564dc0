// Goal: choices are functions of the seed, and fair.
#include "shoal/learn/order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace shoal::learn {
namespace {

TEST(Order, has_every_number_once_and_differs_by_seed_epoch_and_member) {
  for (const std::uint32_t count : {0u, 1u, 2u, 5u, 1000u}) {
    auto order = shuffled(count, 7, 1, 0);
    EXPECT_EQ(order, shuffled(count, 7, 1, 0));
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(order, all);
  }
  const auto order = shuffled(1000, 7, 1, 0);
  EXPECT_NE(order, shuffled(1000, 8, 1, 0));
  EXPECT_NE(order, shuffled(1000, 7, 2, 0));
  EXPECT_NE(order, shuffled(1000, 7, 1, 1));
}

// Each of the 6 orders of three numbers is expected 1,000 times in 6,000 draws, with a deviation of 29.
TEST(Order, each_is_as_likely) {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (unsigned epoch = 0; epoch < 6000; ++epoch) ++seen[shuffled(3, 1, epoch, 0)];
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& [order, times] : seen) EXPECT_NEAR(times, 1000, 5 * 29) << testing::PrintToString(order);
}

TEST(Order, a_share_is_held_out) {
  int held = 0;
  for (std::uint64_t sample = 0; sample < 10'000; ++sample) held += held_out(3, sample, 0.1) ? 1 : 0;
  EXPECT_NEAR(held, 1000, 5 * 30);
  EXPECT_FALSE(held_out(3, 17, 0));
}

TEST(Order, first_values_have_the_deviation_that_was_asked_for) {
  std::vector<float> row(10'000);
  fill_normal(row, 0.5, 1, 2, 3);
  const double mean = std::accumulate(row.begin(), row.end(), 0.0) / 10'000;
  const double square = std::inner_product(row.begin(), row.end(), row.begin(), 0.0) / 10'000;
  EXPECT_NEAR(mean, 0, 5 * 0.005);
  EXPECT_NEAR(square, 0.25, 5 * 0.0036);
  fill_uniform(row, 2, 1, 2, 3);
  EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0) / 10'000, 1, 5 * 0.0058);
  EXPECT_GE(*std::min_element(row.begin(), row.end()), 0);
}

}  // namespace
}  // namespace shoal::learn
