// Which rows of a round go first, and how long it is.
#include "shoal/table/untold.h"

#include <gtest/gtest.h>

#include "shoal/table/pace.h"

namespace shoal::table {
namespace {

using Numbers = std::vector<std::uint32_t>;

// Goal: what the reader is about to need goes first, then what has changed most since it was told; the clock that it may be promised is
// below the first that what is left lacks.
TEST(Untold, due_rows_go_first_and_then_important_ones) {
  const std::vector<double> moved{5, 9, 30, 4, 7};
  const auto now = [&](std::uint32_t number) { return moved[number]; };
  Untold untold;
  untold.add({0, 7, 0});   // importance 5
  untold.add({1, 8, 1});   // 8
  untold.add({2, 9, 29});  // 1, though it has changed most in all
  untold.add({3, 3, 4});   // 0, and lacks clock 3
  untold.add({4, 9, 0});   // 7
  EXPECT_EQ(untold.complete(), 3);
  EXPECT_EQ(untold.take(2, 4, now), (Numbers{3, 1}));
  EXPECT_EQ(untold.complete(), 7);
  EXPECT_EQ(untold.take(1, 4, now), (Numbers{4}));
  EXPECT_EQ(untold.take(1, 100, now), (Numbers{0, 2}));  // all are due, whatever the room
  EXPECT_EQ(untold.complete(), kLastClock);
  untold.add({0, kNever, 0});
  untold.add({1, 5, 0});
  EXPECT_EQ(untold.take(1, kNever, now), (Numbers{0}));  // assigned: at once
}

// Goal: a round takes a fiftieth of a second of what the link was seen to bear, and at least what can be measured.
TEST(Pace, rounds_are_as_long_as_the_link_was_quick) {
  Pace pace;
  Instant now{};
  const auto round = [&](std::size_t bytes, Nanoseconds takes) {
    pace.sends(now, bytes);
    now += takes;
    pace.drained(now);
  };
  EXPECT_GT(pace.room(), std::size_t{1} << 60);
  round(1000, std::chrono::milliseconds(1));          // too short to tell
  EXPECT_GT(pace.room(), std::size_t{1} << 60);
  round(50'000'000, std::chrono::seconds(1));
  EXPECT_EQ(pace.room(), 1'000'000u);
  round(100'000, std::chrono::seconds(1));
  EXPECT_EQ(pace.room(), 750'500u);
  for (int i = 0; i < 50; ++i) round(100'000, std::chrono::seconds(1));
  EXPECT_EQ(pace.room(), Pace::kLeast);
}

}  // namespace
}  // namespace shoal::table
