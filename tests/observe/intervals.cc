// Unions of spans and what two of them share.
#include "shoal/observe/intervals.h"

#include <gtest/gtest.h>

#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

Intervals some(std::initializer_list<std::pair<double, double>> spans) {
  Intervals intervals;
  for (const auto& [begin, end] : spans) intervals.add(ms(begin), ms(end));
  return intervals;
}

TEST(Intervals, count_what_overlaps_once) {
  EXPECT_DOUBLE_EQ(some({{10, 20}, {15, 30}, {30, 35}, {50, 60}}).seconds(), 0.035);
  EXPECT_EQ(some({{10, 20}, {15, 30}, {30, 35}, {50, 60}}).spans().size(), 2u);
}

TEST(Intervals, may_come_in_any_order_and_inside_of_each_other) {
  EXPECT_DOUBLE_EQ(some({{50, 60}, {10, 40}, {20, 25}}).seconds(), 0.040);
}

TEST(Intervals, tell_how_much_of_a_span_they_cover) {
  const Intervals intervals = some({{10, 20}, {30, 40}});
  EXPECT_DOUBLE_EQ(intervals.overlap(ms(0), ms(100)), 0.020);
  EXPECT_DOUBLE_EQ(intervals.overlap(ms(15), ms(35)), 0.010);
  EXPECT_DOUBLE_EQ(intervals.overlap(ms(20), ms(30)), 0);
  EXPECT_DOUBLE_EQ(intervals.overlap(ms(12), ms(13)), 0.001);
  EXPECT_DOUBLE_EQ(intervals.overlap(some({{15, 35}, {39, 50}})), 0.011);
}

TEST(Intervals, empty_ones_cover_nothing) {
  EXPECT_EQ(Intervals().seconds(), 0);
  EXPECT_EQ(Intervals().overlap(ms(0), ms(1)), 0);
  EXPECT_EQ(some({{5, 5}}).seconds(), 0);
}

}  // namespace
}  // namespace shoal::observe
