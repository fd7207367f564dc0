// Goal: partners are the nearest of all where there are few rows, among many near ones, never the sample itself nor of the wrong class, and the same
// in each run.
#include "shoal/learn/partners.h"

#include <gtest/gtest.h>

#include <numeric>

#include "shoal/core/seed.h"
#include "shoal/learn/neighbours.h"

namespace shoal::learn {
namespace {

struct Rows {
  explicit Rows(std::size_t count, std::uint32_t among = 3) : classes(count), numbers(count), points(2 * count) {
    for (std::size_t i = 0; i < count; ++i) classes[i] = static_cast<double>(i % among);
    std::iota(numbers.begin(), numbers.end(), 0U);
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(uniform(4, i, 0, 0));
  }
  float apart(std::size_t a, std::size_t b) const {
    return squared_distance(std::span(points).subspan(2 * a, 2), std::span(points).subspan(2 * b, 2));
  }
  // Of the rows that are as near as `other` or nearer and of its kind (of the class of `row`, or not), how many there are.
  std::size_t place(std::size_t row, std::size_t other) const {
    std::size_t place = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      place += i != row && (classes[i] == classes[row]) == (classes[other] == classes[row]) && apart(row, i) <= apart(row, other) ? 1 : 0;
    }
    return place;
  }
  std::vector<double> classes;
  std::vector<std::uint32_t> numbers;
  std::vector<float> points;
};

TEST(Partners, among_few_rows_they_are_the_nearest) {
  const Rows rows(60);
  const Partners partners(rows.classes, rows.numbers, 1);
  for (std::uint32_t row = 0; row < 60; ++row) {
    const auto found = partners.of(row, 0, rows.points, 2);
    ASSERT_TRUE(found);
    EXPECT_NE(found->alike, row);
    EXPECT_EQ(rows.classes[found->alike], rows.classes[row]);
    EXPECT_NE(rows.classes[found->other], rows.classes[row]);
    EXPECT_EQ(rows.place(row, found->alike), 1);
    EXPECT_EQ(rows.place(row, found->other), 1);
  }
}

// Of 128 looks at n rows the nearest is in the mean the n/129-th: of 1,000 the 8th, of 2,000 the 16th, give or take a tenth over so many samples.
TEST(Partners, among_many_rows_they_are_near_and_others_in_each_epoch) {
  const Rows rows(3000);
  const Partners partners(rows.classes, rows.numbers, 1);
  double alike = 0, other = 0;
  unsigned changed = 0;
  for (std::uint32_t row = 0; row < 300; ++row) {
    const auto found = partners.of(row, 1, rows.points, 2), again = partners.of(row, 1, rows.points, 2), next = partners.of(row, 2, rows.points, 2);
    EXPECT_EQ(found->alike, again->alike);
    EXPECT_EQ(found->other, again->other);
    changed += found->other != next->other ? 1 : 0;
    EXPECT_NE(found->alike, row);
    EXPECT_EQ(rows.classes[found->alike], rows.classes[row]);
    EXPECT_NE(rows.classes[found->other], rows.classes[row]);
    alike += static_cast<double>(rows.place(row, found->alike)) / 300;
    other += static_cast<double>(rows.place(row, found->other)) / 300;
  }
  EXPECT_NEAR(alike, 1000.0 / 129, 2);
  EXPECT_NEAR(other, 2000.0 / 129, 4);
  EXPECT_GT(changed, 150);
}

TEST(Partners, who_has_none_is_told) {
  const Rows one_class(5, 1);
  EXPECT_FALSE(Partners(one_class.classes, one_class.numbers, 1).of(2, 0, one_class.points, 2));
  Rows alone(5, 1);
  alone.classes[3] = 1;
  const Partners partners(alone.classes, alone.numbers, 1);
  EXPECT_FALSE(partners.of(3, 0, alone.points, 2));
  EXPECT_EQ(partners.of(2, 0, alone.points, 2)->other, 3);
}

}  // namespace
}  // namespace shoal::learn
