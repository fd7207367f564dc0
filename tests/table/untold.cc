// Which rows of a round go first, and how long it is.
#include "shoal/table/untold.h"

#include <gtest/gtest.h>

#include "shoal/table/pace.h"

namespace shoal::table {
namespace {

using Changes = std::vector<Change>;

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
  EXPECT_EQ(untold.take(2, 4, now), (Changes{{3, kWhole}, {1, kWhole}}));
  EXPECT_EQ(untold.complete(), 7);
  EXPECT_EQ(untold.take(1, 4, now), (Changes{{4, kWhole}}));
  EXPECT_EQ(untold.take(1, 100, now), (Changes{{0, kWhole}, {2, kWhole}}));  // all are due, whatever the room
  EXPECT_EQ(untold.complete(), kLastClock);
  untold.add({0, kNever, 0});
  untold.add({1, 5, 0});
  EXPECT_EQ(untold.take(1, kNever, now), (Changes{{0, kWhole}}));  // assigned: at once
}

// Goal: of a row that is left the columns add up until it is told, whichever way it goes.
TEST(Untold, what_has_changed_of_a_row_adds_up) {
  const auto now = [](std::uint32_t) { return 0.0; };
  Untold untold;
  untold.add({0, 1, 0}, 0b001);
  untold.add({1, 1, 0}, 0b010);
  untold.add({2, 1, 0});
  untold.add({3, 1, 0}, 0b100);
  untold.grow(0, 0b101);
  untold.grow(1, kWhole);
  untold.grow(2, 0b001);
  untold.drop([](std::uint32_t number) { return number == 3; });
  EXPECT_EQ(untold.take(9, 0, now), (Changes{{0, 0b101}, {1, kWhole}, {2, kWhole}}));
  untold.add({0, 2, 0}, 0b010);
  untold.add({3, 2, 0});
  EXPECT_EQ(untold.take(9, 0, now), (Changes{{0, 0b010}, {3, kWhole}})) << "what was told or dropped is forgotten";
}

// Goal: as many rows go as their mean length lets into the room, at least one.
TEST(Untold, rows_of_which_little_has_changed_take_little_room) {
  const auto bytes = [](Blocks blocks) { return blocks == kWhole ? std::size_t{100} : std::size_t{20}; };
  Untold untold;
  EXPECT_EQ(untold.fit(1000, bytes), 1u);
  untold.add({0, 1, 0});
  EXPECT_EQ(untold.fit(1000, bytes), 10u);
  EXPECT_EQ(untold.fit(99, bytes), 1u);
  untold.add({1, 1, 0}, 0b001);
  EXPECT_EQ(untold.fit(1000, bytes), 16u);
  untold.clear();
  untold.add({2, 1, 0}, 0b001);
  EXPECT_EQ(untold.fit(1000, bytes), 50u);
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
