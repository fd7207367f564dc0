#include "shoal/table/gate.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace shoal::table {
namespace {

using std::chrono::milliseconds;

// Goal: of the clocks that may be added, the one whose end is nearest to a tick of the slowest. Each expectation by a drawing of both series.
TEST(Gate, clocks_end_where_the_slowest_ticks) {
  EXPECT_EQ(clocks_to_add(5, milliseconds(10), milliseconds(30), milliseconds(0)), 3);   // 0, 10, 20, [30]
  EXPECT_EQ(clocks_to_add(2, milliseconds(10), milliseconds(30), milliseconds(0)), 2);
  EXPECT_EQ(clocks_to_add(5, milliseconds(10), milliseconds(30), milliseconds(25)), 0);  // the next is 5 away: waiting is as good as 10 more
  EXPECT_EQ(clocks_to_add(5, milliseconds(10), milliseconds(30), milliseconds(9)), 2);   // 9, 19, [29]
  EXPECT_EQ(clocks_to_add(5, milliseconds(0), milliseconds(30), milliseconds(9)), 0);    // not known
}

// Goal: a worker of 10 ms beside a slowest of 40 ms goes on as far as the policy's most, and then waits for one tick of the slowest;
// it is never asked to wait when it is no more than the least ahead.
TEST(Gate, dynamic_staleness_stays_between_its_bounds) {
  const Dssp policy{1, 4};
  DynamicGate gate(1);
  Instant now{};
  Clock slowest = 0, waits = 0;
  for (Clock clock = 1; clock <= 40; ++clock) {
    now += milliseconds(10);
    while ((slowest + 1) * milliseconds(40) <= now - Instant{}) gate.rises(++slowest, Instant{} + slowest * milliseconds(40));
    gate.ticks(0, clock, policy, now);
    const Clock stale = gate.staleness(0);
    EXPECT_GE(stale, 1);
    EXPECT_LE(stale, 4);
    if (clock - slowest <= 1) {
      EXPECT_EQ(stale, 1);
    }
    while (clock - slowest > stale) {  // the read gate
      ++waits;
      now = Instant{} + (slowest + 1) * milliseconds(40);
      gate.rises(++slowest, now);
    }
  }
  EXPECT_GT(waits, 0);
  EXPECT_LE(40 - slowest, 4);
}

TEST(Gate, samples_are_others_and_each_as_often) {
  const Pssp policy{3, 2};
  std::map<std::uint32_t, int> times;
  constexpr int kClocks = 4000;
  for (Clock clock = 0; clock < kClocks; ++clock) {
    const auto drawn = sampled(policy, 7, clock, 1, 5);
    EXPECT_EQ(drawn, sampled(policy, 7, clock, 1, 5));
    EXPECT_EQ(std::set<std::uint32_t>(drawn.begin(), drawn.end()).size(), 2u);
    for (const std::uint32_t worker : drawn) ++times[worker];
  }
  EXPECT_EQ(times.count(1), 0u);
  for (const std::uint32_t other : {0u, 2u, 3u, 4u}) EXPECT_NEAR(times[other], kClocks / 2, 160) << other;  // five deviations
  EXPECT_EQ(sampled({3, 100}, 7, 0, 1, 5), sampled({3, 4}, 7, 0, 1, 5));
  EXPECT_EQ(sampled({3, 4}, 7, 0, 1, 5).size(), 4u);
}

}  // namespace
}  // namespace shoal::table
