// What counts as the network's time: not what a buffer hands over.
#include "shoal/net/train_counter.h"

#include <gtest/gtest.h>

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFrame = 1000;
constexpr Nanoseconds kShortest = 20ms;
constexpr bool kFollows = true, kWaited = true;

class TrainCounterTest : public ::testing::Test {
 protected:
  void frame(Nanoseconds at, bool follows, bool waited) { counter_.frame(Instant{} + 1s + at, kFrame, follows, waited, all_ += kFrame); }
  void expect(std::uint64_t bytes, double seconds) const {
    const Trains trains = counter_.so_far();
    EXPECT_EQ(trains.bytes, bytes);
    EXPECT_EQ(trains.beside, bytes);
    EXPECT_DOUBLE_EQ(trains.seconds, seconds);
  }

 private:
  TrainCounter counter_{kShortest};
  std::uint64_t all_ = 0;
};

TEST_F(TrainCounterTest, frames_that_each_waited_take_what_lies_between_them) {
  frame(0ms, !kFollows, kWaited);
  frame(100ms, kFollows, kWaited);
  frame(300ms, kFollows, kWaited);
  expect(2 * kFrame, 0.3);
}

TEST_F(TrainCounterTest, what_comes_out_of_a_buffer_counts_when_the_network_was_waited_for_again) {
  frame(0ms, !kFollows, kWaited);
  frame(800ms, kFollows, !kWaited);  // the reader was late, and finds three at once
  frame(800ms, kFollows, !kWaited);
  frame(800ms, kFollows, !kWaited);
  expect(0, 0);
  frame(1000ms, kFollows, kWaited);
  expect(4 * kFrame, 1.0);
}

TEST_F(TrainCounterTest, a_train_that_only_a_buffer_took_says_nothing) {
  frame(0ms, !kFollows, !kWaited);
  frame(0ms, kFollows, !kWaited);
  frame(500ms, !kFollows, !kWaited);
  frame(500ms, kFollows, kWaited);  // from here on the network's pace is known
  expect(0, 0);
  frame(600ms, kFollows, kWaited);
  expect(kFrame, 0.1);
}

TEST_F(TrainCounterTest, what_is_too_short_to_say_something_counts_with_what_follows) {
  frame(0ms, !kFollows, kWaited);
  frame(kShortest / 2, kFollows, kWaited);
  expect(0, 0);
  frame(kShortest * 2, kFollows, kWaited);
  expect(2 * kFrame, Seconds(kShortest * 2).count());
}

TEST_F(TrainCounterTest, a_pause_of_the_sender_does_not_count) {
  frame(0ms, !kFollows, kWaited);
  frame(100ms, kFollows, kWaited);
  frame(9000ms, !kFollows, kWaited);
  frame(9100ms, kFollows, kWaited);
  expect(2 * kFrame, 0.2);
}

}  // namespace
}  // namespace shoal::net
