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
  clocks.arrive(2, 0);
  EXPECT_FALSE(clocks.all_arrived());
  // Who waits is none of the spared: else one who was late, and went on at the newest clock, would wait for itself.
  EXPECT_TRUE(clocks.rise(1));
  EXPECT_EQ(clocks.slowest(), 5);
  clocks.complete(1, 6);
  EXPECT_FALSE(clocks.rise(0));
  EXPECT_EQ(clocks.each(), (std::vector<Clock>{5, 7, kLastClock}));
}

TEST(Clocks, all_leave_a_barrier_at_the_clock_of_who_was_furthest) {
  Clocks clocks(2);
  clocks.complete(1, 8);
  clocks.arrive(0, 0);
  EXPECT_FALSE(clocks.all_arrived());
  clocks.arrive(1, 9);
  EXPECT_TRUE(clocks.all_arrived());
  clocks.meet();
  EXPECT_EQ(clocks.slowest(), 9);
  EXPECT_EQ(clocks.each(), (std::vector<Clock>{9, 9}));
}

TEST(Clocks, nobody_waits_for_who_is_lost) {
  Clocks clocks(3);
  for (const std::uint32_t worker : {0u, 1u}) clocks.complete(worker, 4);
  EXPECT_FALSE(clocks.rise(0));
  clocks.lose(2, 0);
  EXPECT_TRUE(clocks.rise(0));
  EXPECT_EQ(clocks.slowest(), 5);
  clocks.arrive(0, 5);
  EXPECT_FALSE(clocks.all_arrived());
  clocks.arrive(1, 5);
  EXPECT_TRUE(clocks.all_arrived());
  clocks.meet_at_least_at(7);  // others have met there with the lost one
  clocks.meet();
  EXPECT_EQ(clocks.slowest(), 7);
  EXPECT_EQ(clocks.completed(2), 0);
  for (const std::uint32_t worker : {0u, 1u}) clocks.lose(worker, 7);
  EXPECT_FALSE(clocks.rise(0));
  EXPECT_FALSE(clocks.all_arrived());
}

}  // namespace
}  // namespace shoal::table
