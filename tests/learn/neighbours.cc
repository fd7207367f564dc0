// Goal: votes and pairs are those counted by hand, and distances of sparse rows are those of the same rows written out.
#include "shoal/learn/neighbours.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "shoal/core/seed.h"

namespace shoal::learn {
namespace {

TEST(Neighbours, votes_and_pairs_are_those_counted_by_hand) {
  std::vector<float> points{0, 1, 3, 4};
  std::vector<double> classes{1, 1, 2, 2};
  const auto voted = [&](float point, std::size_t k) {
    const std::vector<float> asked{point};
    std::vector<float> squared(points.size());
    distances(asked, points, 1)(0, squared);
    return vote(squared, classes, k);
  };
  EXPECT_EQ(voted(1.9f, 1), 1);
  EXPECT_EQ(voted(2.1f, 3), 2);
  EXPECT_EQ(voted(1.9f, 4), 1) << "two and two: the nearest decides";
  EXPECT_EQ(rightly_voted(distances(points, points, 1), classes, 1), 4);
  EXPECT_EQ(pair_auc(distances(points, points, 1), classes), 1);
  points.push_back(1);
  classes.push_back(2);  // 4 pairs of one class: 1, 1, 2, 3; 6 of two: 1, 0, 3, 2, 4, 3
  EXPECT_DOUBLE_EQ(pair_auc(distances(points, points, 1), classes), (2 * (0.5 + 4) + (0.5 + 3) + (0.5 * 2 + 1)) / 24);
  const std::vector<float> asked{0.2f, 3.6f};
  const std::vector<double> theirs{1, 1};
  EXPECT_EQ(rightly_voted(distances(asked, points, 1), theirs, classes, 1), 1);
  EXPECT_TRUE(std::isnan(vote({}, {}, 3)));
}

// Whole numbers, so that sums are exact. Known rows may have columns that samples lack, and the other way round.
TEST(Neighbours, rows_as_they_are_are_as_far_apart_as_written_out) {
  constexpr std::uint32_t width = 7;
  const auto drawn = [](std::size_t count, std::uint32_t columns, std::uint32_t site) {
    data::SparseRows rows;
    std::vector<float> all(count * width);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint32_t> own;
      std::vector<float> values;
      for (std::uint32_t c = 0; c < columns; ++c) {
        const auto value = static_cast<float>(std::floor(7 * uniform(1, i, c, site)) - 3);
        if (value == 0) continue;
        own.push_back(c);
        values.push_back(all[i * width + c] = value);
      }
      rows.append(data::SparseRow{0, own, values});
    }
    rows.width = columns;
    return std::pair(rows, all);
  };
  for (const std::uint32_t columns : {3u, width}) {
    const auto [samples, samples_out] = drawn(5, columns, 1);
    const auto [known, known_out] = drawn(9, width + 3 - columns, 2);
    const auto sparse = distances(samples, known), out = distances(samples_out, known_out, width);
    for (std::size_t i = 0; i < 5; ++i) {
      std::vector<float> one(9), other(9);
      sparse(i, one);
      out(i, other);
      EXPECT_EQ(one, other);
    }
  }
}

}  // namespace
}  // namespace shoal::learn
