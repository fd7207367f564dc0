// Goal: each different pair has the next number, and no other. Oracle: std::map.
#include "shoal/text/pair_numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace shoal::text {
namespace {

TEST(PairNumbers, are_those_of_a_map) {
  std::mt19937 random(1);
  PairNumbers pairs;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> expected;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t far = random() % 50 == 0 ? 0xFFFFFF00u : 0;
    const std::pair<std::uint32_t, std::uint32_t> pair{far + random() % 200, random() % 300};
    const auto known = expected.find(pair);
    ASSERT_EQ(pairs.find(pair.first, pair.second), known == expected.end() ? std::nullopt : std::optional(known->second));
    const std::uint32_t number = expected.emplace(pair, static_cast<std::uint32_t>(expected.size())).first->second;
    ASSERT_EQ(pairs.number(pair.first, pair.second), number);
    ASSERT_EQ(pairs[number], pair);
  }
  EXPECT_EQ(pairs.size(), expected.size());
}

}  // namespace
}  // namespace shoal::text
