#include "shoal/table/clocks.h"

#include <gtest/gtest.h>

namespace shoal::table {
namespace {

// Goal: the slowest is the least clock that is complete, without the spared, and without who waits at a barrier.
TEST(Clocks, the_slowest_that_counts_decides) {
  Clocks clocks(3);
  clocks.complete(0, 4);
  clocks.complete(1, 2);
  EXPECT_FALSE(clocks.rise(0));
  EXPECT_TRUE(clocks.rise(1));
  EXPECT_EQ(clocks.slowest(), 3);
  EXPECT_FALSE(clocks.rise(0));              // it never falls
  EXPECT_EQ(clocks.slowest(), 3);
  EXPECT_FALSE(clocks.arrive(2, 0));
  EXPECT_FALSE(clocks.rise(1));              // who waits is one of the spared
  clocks.complete(1, 6);
  EXPECT_TRUE(clocks.rise(0));
  EXPECT_EQ(clocks.slowest(), 5);
  EXPECT_EQ(clocks.each(), (std::vector<Clock>{5, 7, kLastClock}));
}

TEST(Clocks, all_leave_a_barrier_at_the_clock_of_who_was_furthest) {
  Clocks clocks(2);
  clocks.complete(1, 8);
  EXPECT_FALSE(clocks.arrive(0, 0));
  EXPECT_TRUE(clocks.arrive(1, 9));
  clocks.meet();
  EXPECT_EQ(clocks.slowest(), 9);
  EXPECT_EQ(clocks.each(), (std::vector<Clock>{9, 9}));
}

}  // namespace
}  // namespace shoal::table
