// Goal: the directions are orthonormal, and those in which rows that were made along known ones differ most.
#include "shoal/learn/principal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "shoal/core/seed.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kWidth = 6;

// Each row is a sum of so many orthogonal patterns, the first of which is tenfold the next, and so on.
data::SparseRows made_along(std::uint32_t patterns) {
  constexpr float table[3][kWidth] = {{1, 1, 0, 0, 0, 0}, {0, 0, 1, 1, 1, 0}, {1, -1, 0, 0, 0, 2}};
  data::SparseRows rows;
  rows.width = kWidth;
  for (std::uint32_t i = 0; i < 50; ++i) {
    std::vector<std::uint32_t> columns;
    std::vector<float> values;
    for (std::uint32_t c = 0; c < kWidth; ++c) {
      double sum = 0;
      for (std::uint32_t p = 0; p < patterns; ++p) sum += table[p][c] * (2 * uniform(1, i, p, 0) - 1) * std::pow(10.0, -static_cast<double>(p));
      columns.push_back(c);
      values.push_back(static_cast<float>(sum));
    }
    rows.append(data::SparseRow{0, columns, values});
  }
  return rows;
}

double product(const std::vector<float>& values, std::uint32_t dimensions, std::uint32_t a, std::uint32_t b) {
  double sum = 0;
  for (std::uint32_t c = 0; c < kWidth; ++c) sum += double{values[c * dimensions + a]} * values[c * dimensions + b];
  return sum;
}

TEST(Principal, directions_are_those_in_which_rows_differ_most) {
  const auto values = principal_directions(made_along(3), 2, 7);
  ASSERT_EQ(values.size(), kWidth * 2);
  for (std::uint32_t a = 0; a < 2; ++a) {
    for (std::uint32_t b = 0; b < 2; ++b) EXPECT_NEAR(product(values, 2, a, b), a == b ? 1 : 0, 1e-6);
  }
  for (std::uint32_t c = 0; c < kWidth; ++c) {  // the first two patterns span them, the third is left out
    const double expected = c < 2 ? 1 / 2.0 : c < 5 ? 1 / 3.0 : 0;
    EXPECT_NEAR(std::pow(values[c * 2], 2) + std::pow(values[c * 2 + 1], 2), expected, 0.02) << "column " << c;
  }
}

TEST(Principal, directions_that_rows_do_not_have_are_zero) {
  const auto values = principal_directions(made_along(2), 4, 7);
  for (std::uint32_t k = 0; k < 4; ++k) EXPECT_NEAR(product(values, 4, k, k), k < 2 ? 1 : 0, 1e-6);
  for (const float value : principal_directions({.offsets = {0}, .columns = {}, .values = {}, .labels = {}, .width = 3}, 2, 7)) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace shoal::learn
