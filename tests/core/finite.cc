// What is not finite is found wherever it stands, on every target that this CPU has, and copies are the bits that were there and no more.
#include "shoal/core/finite.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "tests/core/every_target.h"

namespace shoal {
namespace {

class Finite : public EveryTarget {};

template <class T>
void look_for_each() {
  using Limits = std::numeric_limits<T>;
  for (const std::size_t size : {0u, 1u, 3u, 7u, 16u, 33u, 100u, 300'001u}) {
    std::vector<T> values(size + 1);  // from the second on: without alignment
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? Limits::max() : i % 3 == 1 ? -Limits::denorm_min() : T{-0.0};
    const std::span<const T> from = std::span<const T>(values).subspan(1);
    std::vector<T> into(size + 2, T{7});
    const auto copied = [&] {
      return std::memcmp(into.data() + 1, from.data(), from.size_bytes()) == 0 && into.front() == T{7} && into.back() == T{7};
    };
    EXPECT_TRUE(all_finite(from));
    EXPECT_TRUE(copy_finite(std::span(into).subspan(1, size), from));
    EXPECT_TRUE(copied());
    for (const T wrong : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::signaling_NaN()}) {
      for (std::size_t at = 1; at <= size; at += size < 1000 ? 1 : 33'331) {
        const T before = std::exchange(values[at], wrong);
        EXPECT_FALSE(all_finite(from));
        EXPECT_FALSE(copy_finite(std::span(into).subspan(1, size), from));
        EXPECT_TRUE(copied());
        values[at] = before;
      }
    }
  }
}

TEST_P(Finite, floats) { look_for_each<float>(); }
TEST_P(Finite, doubles) { look_for_each<double>(); }

INSTANTIATE_TEST_SUITE_P(targets, Finite, testing::ValuesIn(targets_here()), target_name);

}  // namespace
}  // namespace shoal
