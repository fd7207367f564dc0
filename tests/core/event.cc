// Events of all threads come out once, in the order in which they began; what does not fit is counted.
// The stream is the process's, so every test first empties it.
#include "shoal/core/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

namespace shoal {
namespace {

Instant at(std::int64_t nanoseconds) { return Instant(Nanoseconds(nanoseconds)); }

class EventStream : public testing::Test {
 protected:
  EventStream() {
    events.enable(true);
    events.drain();
  }
  ~EventStream() override { events.enable(false); }
  Events& events = Events::local();
};

TEST_F(EventStream, gives_back_what_was_recorded) {
  const std::uint32_t tensor = events.intern("fc1.weight");
  events.record({EventKind::exchange, at(5), at(9), 3, 2, 1024, tensor});
  const std::vector<Event> drained = events.drain();
  ASSERT_EQ(drained.size(), 1u);
  EXPECT_EQ(drained[0].kind, EventKind::exchange);
  EXPECT_EQ(drained[0].begin, at(5));
  EXPECT_EQ(drained[0].end, at(9));
  EXPECT_EQ(drained[0].step, 3);
  EXPECT_EQ(drained[0].peer, 2);
  EXPECT_EQ(drained[0].value, 1024);
  EXPECT_EQ(events.name_of(drained[0].name), "fc1.weight");
  EXPECT_TRUE(events.drain().empty());
}

TEST_F(EventStream, is_silent_while_disabled) {
  events.enable(false);
  EXPECT_FALSE(events.enabled());
  events.record({EventKind::note, at(1), at(1)});
  EXPECT_TRUE(events.drain().empty());
}

TEST_F(EventStream, orders_the_events_of_all_threads_by_begin) {
  events.record({EventKind::forward, at(20), at(21)});
  std::thread([&] {
    events.record({EventKind::sent, at(10), at(11)});
    events.record({EventKind::sent, at(30), at(31)});
  }).join();
  const std::vector<Event> drained = events.drain();
  ASSERT_EQ(drained.size(), 3u);
  EXPECT_EQ(drained[0].begin, at(10));
  EXPECT_EQ(drained[1].begin, at(20));
  EXPECT_EQ(drained[2].begin, at(30));
}

TEST_F(EventStream, counts_what_a_full_buffer_drops_and_keeps_the_oldest) {
  constexpr int kRecorded = 100000;  // more than a buffer holds
  const std::uint64_t before = events.dropped();
  std::thread([&] {
    for (int i = 0; i < kRecorded; ++i) events.record({EventKind::sent, at(i), at(i + 1)});
  }).join();
  const std::vector<Event> drained = events.drain();
  EXPECT_LT(drained.size(), static_cast<std::size_t>(kRecorded));
  EXPECT_EQ(drained.size() + (events.dropped() - before), static_cast<std::size_t>(kRecorded));
  for (std::size_t i = 0; i < drained.size(); ++i)
    ASSERT_EQ(drained[i].begin, at(static_cast<std::int64_t>(i)));
}

// Four writers and a reader at once: nothing is lost, doubled or torn.
TEST_F(EventStream, loses_nothing_while_it_is_drained) {
  constexpr int kWriters = 4, kEach = 20000;
  std::atomic<int> running{kWriters};
  std::latch all_have_a_buffer(kWriters);  // a thread that came after another's end would share its buffer
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kEach; ++i) {
        events.record({EventKind::sent, at(i), at(i), i, writer, static_cast<double>(i)});
        if (i == 0) all_have_a_buffer.arrive_and_wait();
      }
      --running;
    });
  }
  std::vector<Event> all;
  const auto drain = [&] {
    for (const Event& event : events.drain()) all.push_back(event);
  };
  while (running > 0) drain();
  for (std::thread& writer : writers) writer.join();
  drain();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kWriters) * kEach);
  std::vector<std::int64_t> next(kWriters, 0);
  for (const Event& event : all) {
    ASSERT_EQ(event.step, next[static_cast<std::size_t>(event.peer)]++);
    ASSERT_EQ(event.value, static_cast<double>(event.step));
  }
}

TEST_F(EventStream, interns_a_name_once) {
  const std::uint32_t first = events.intern("conv1.weight");
  EXPECT_EQ(events.intern("conv1.weight"), first);
  EXPECT_NE(events.intern("conv1.bias"), first);
  EXPECT_EQ(events.name_of(first), "conv1.weight");
  EXPECT_EQ(events.intern(""), 0u);
  EXPECT_EQ(events.name_of(0), "");
  EXPECT_EQ(events.name_of(~0u), "");
}

// Last, since it fills the table of this process.
TEST_F(EventStream, zz_names_without_end_share_one) {
  std::uint32_t last = 0;
  for (int i = 0; i < 70000; ++i) last = events.intern("invented " + std::to_string(i));
  EXPECT_EQ(events.intern("one more"), last);
  EXPECT_EQ(events.name_of(last), "(more names)");
}

}  // namespace
}  // namespace shoal
