// The scripted network keeps Transport's contract: streams, credit, priority, order, faults. Everything here is
// decided by the seed, so each expectation is exact.
#include "shoal/net/inproc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::vector<std::byte> counting(std::size_t size, int start = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(start + static_cast<int>(i * 7 + i / 251));
  return bytes;
}

// A stream is bytes in order, however the two ends cut it.
TEST(Inproc, sends_and_receives_are_cut_independently) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    InprocJob job(2, {.seed = seed});
    const auto sent = counting(300'001);
    std::vector<std::byte> got(sent.size());
    const std::size_t send_cuts[] = {1, 0, 99'999, 200'001}, receive_cuts[] = {100'000, 3, 0, 199'998};
    std::vector<int> order;
    std::size_t at = 0;
    for (std::size_t cut : send_cuts) {
      job.member(0).send(1, {5, 0}, {}, std::span(sent).subspan(at, cut), [](const Failure& why) { EXPECT_FALSE(why); });
      at += cut;
    }
    at = 0;
    for (int i = 0; i < 4; ++i) {
      job.member(1).receive(0, {5, 0}, {}, std::span(got).subspan(at, receive_cuts[i]), [&order, i](const Failure& why) {
        EXPECT_FALSE(why);
        order.push_back(i);
      });
      at += receive_cuts[i];
    }
    EXPECT_TRUE(job.run());
    EXPECT_EQ(got, sent);
    std::erase(order, 2);  // the empty receive waits for nothing
    EXPECT_EQ(order, (std::vector<int>{0, 1, 3}));
    EXPECT_EQ(job.bytes_sent(0, 1), sent.size());
  }
}

// Without a receive no more than the eager allowance leaves; the receive lets the rest go.
TEST(Inproc, a_sender_waits_for_the_receiver_beyond_the_eager_allowance) {
  InprocJob job(2, {.eager = 10'000});
  const auto sent = counting(50'000);
  std::vector<std::byte> got(sent.size());
  bool handed_over = false;
  job.member(0).send(1, {1, 0}, {}, sent, [&](const Failure&) { handed_over = true; });
  EXPECT_TRUE(job.run());
  EXPECT_EQ(job.bytes_sent(0, 1), 10'000u);
  EXPECT_FALSE(handed_over);
  job.member(1).receive(0, {1, 0}, {}, got, [](const Failure&) {});
  EXPECT_TRUE(job.run());
  EXPECT_TRUE(handed_over);
  EXPECT_EQ(got, sent);
}

// One link, three sends given worst first: the urgent one, then the lower value, then the older iteration arrive first.
TEST(Inproc, frames_leave_by_class_then_value_then_iteration) {
  InprocJob job(2, {.delay_min = Nanoseconds(1000), .delay_max = Nanoseconds(1000), .rate = 1e6, .eager = 1 << 20});
  const auto sent = counting(200'000);
  struct Case {
    std::uint64_t operation;
    Priority priority;
    std::size_t bytes;
  };
  const Case cases[] = {{1, {Class::background, 0, 0}, 100'000},
                        {2, {Class::bulk, 7, 1}, 100'000},
                        {3, {Class::bulk, 7, 0}, 100'000},
                        {4, {Class::bulk, 3, 9}, 100'000},
                        {5, {Class::urgent, 9, 9}, 100}};
  std::vector<std::vector<std::byte>> got(6);
  std::vector<std::uint64_t> order;
  for (const Case& c : cases) {
    got[c.operation].resize(c.bytes);
    job.member(0).send(1, {c.operation, 0}, c.priority, std::span(sent).first(c.bytes), [](const Failure&) {});
    job.member(1).receive(0, {c.operation, 0}, c.priority, got[c.operation],
                          [&order, &c](const Failure&) { order.push_back(c.operation); });
  }
  EXPECT_TRUE(job.run());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{5, 4, 3, 2, 1}));
}

// Two senders fill one receiver's link: together they need bytes / rate.
TEST(Inproc, both_ends_of_a_link_have_its_rate) {
  InprocJob job(3, {.rate = 1e6});
  const auto sent = counting(500'000);
  std::vector<std::byte> got[2] = {std::vector<std::byte>(sent.size()), std::vector<std::byte>(sent.size())};
  for (Rank from : {0u, 1u}) {
    job.member(from).send(2, {1, 0}, {}, sent, [](const Failure&) {});
    job.member(2).receive(from, {1, 0}, {}, got[from], [](const Failure&) {});
  }
  EXPECT_TRUE(job.run());
  EXPECT_GE(job.now() - Instant{}, milliseconds(1000));
  EXPECT_LE(job.now() - Instant{}, milliseconds(1100));
}

TEST(Inproc, the_same_seed_gives_the_same_run) {
  const auto finish = [](std::uint64_t seed) {
    InprocJob job(2, {.seed = seed});
    const auto sent = counting(100'000);
    std::vector<std::byte> got(sent.size());
    job.member(0).send(1, {1, 0}, {}, sent, [](const Failure&) {});
    job.member(1).receive(0, {1, 0}, {}, got, [](const Failure&) {});
    job.run();
    return job.now();
  };
  EXPECT_EQ(finish(3), finish(3));
  EXPECT_NE(finish(3), finish(4));
}

TEST(Inproc, timers_run_in_time_order_and_not_after_cancel) {
  InprocJob job(1);
  Transport& member = job.member(0);
  std::vector<int> ran;
  member.at(member.now() + milliseconds(20), [&] { ran.push_back(2); });
  member.at(member.now() + milliseconds(10), [&] { ran.push_back(1); });
  member.cancel(member.at(member.now() + milliseconds(15), [&] { ran.push_back(9); }));
  member.post([&] {
    ran.push_back(0);
    EXPECT_TRUE(member.on_loop());
  });
  EXPECT_TRUE(job.run());
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(member.on_loop());
}

TEST(Inproc, drive_returns_at_the_scripted_deadline) {
  InprocJob job(2);
  Transport& member = job.member(0);
  EXPECT_FALSE(member.drive([] { return false; }, member.now() + milliseconds(50)));
  EXPECT_EQ(member.now() - Instant{}, milliseconds(50));
  bool done = false;
  member.at(member.now() + milliseconds(1), [&] { done = true; });
  EXPECT_TRUE(member.drive([&] { return done; }, member.now() + milliseconds(50)));
  EXPECT_EQ(member.now() - Instant{}, milliseconds(51));
}

struct Ended {
  int times = 0;
  Failure why;
};
Done into(Ended& ended) {
  return [&ended](const Failure& why) {
    ++ended.times;
    ended.why = why;
  };
}

TEST(Inproc, close_ends_the_operations_streams_and_drops_late_bytes) {
  InprocJob job(2);
  const auto sent = counting(1000);
  std::vector<std::byte> got(2000), other(1000);
  Ended closed, kept;
  job.member(1).receive(0, {1, 0}, {}, got, into(closed));
  job.member(1).receive(0, {2, 0}, {}, other, into(kept));
  job.member(1).close(1, std::make_shared<const Error>(Code::cancelled, "closed"));
  for (std::uint64_t operation : {1u, 2u}) job.member(0).send(1, {operation, 0}, {}, sent, [](const Failure&) {});
  EXPECT_TRUE(job.run());
  EXPECT_EQ(closed.times, 1);
  ASSERT_TRUE(closed.why);
  EXPECT_EQ(closed.why->code(), Code::cancelled);
  EXPECT_EQ(got, std::vector<std::byte>(2000));
  EXPECT_EQ(kept.times, 1);
  EXPECT_EQ(other, sent);
}

// Every waiting handler of every survivor runs once, with the same cause, at once after a kill.
TEST(Inproc, a_killed_member_ends_all_survivors_with_its_name_and_last_activity) {
  InprocJob job(3);
  job.member(2).doing("step 12, all-reduce of fc1.weight");
  std::vector<std::byte> got(10);
  Ended of_dead, of_living, told, later;
  job.member(0).receive(2, {1, 0}, {}, got, into(of_dead));
  job.member(0).receive(1, {1, 0}, {}, got, into(of_living));
  job.member(1).on_failure(into(told));
  job.at(milliseconds(3), [&] { job.kill(2); });
  EXPECT_TRUE(job.run());
  for (const Ended* ended : {&of_dead, &of_living, &told}) {
    EXPECT_EQ(ended->times, 1);
    ASSERT_TRUE(ended->why);
    EXPECT_EQ(ended->why->code(), Code::peer_lost);
    EXPECT_STREQ(ended->why->what(),
                 "rank 2 (member2) was lost: connection closed; it last did: step 12, all-reduce of fc1.weight");
  }
  EXPECT_LT(job.now() - Instant{}, milliseconds(10));
  job.member(1).receive(0, {9, 0}, {}, got, into(later));
  EXPECT_TRUE(job.run());
  EXPECT_EQ(later.times, 1);
  EXPECT_EQ(later.why, job.member(1).failure());
}

TEST(Inproc, a_frozen_member_and_a_cut_link_are_found_by_silence) {
  for (bool freeze : {true, false}) {
    InprocJob job(3);
    Ended ended;
    std::vector<std::byte> got(10);
    job.member(0).receive(1, {1, 0}, {}, got, into(ended));
    job.at(milliseconds(100), [&] { freeze ? job.freeze(1) : job.cut(0, 1); });
    EXPECT_TRUE(job.run());
    EXPECT_EQ(ended.times, 1);
    ASSERT_TRUE(ended.why);
    EXPECT_EQ(ended.why->code(), Code::peer_lost);
    EXPECT_THAT(ended.why->what(), HasSubstr("not heard for 5 s"));
    EXPECT_TRUE(job.member(2).failure());
    EXPECT_GE(job.now() - Instant{}, milliseconds(5100));
    EXPECT_LE(job.now() - Instant{}, milliseconds(5600));
  }
}

TEST(Inproc, a_member_that_hears_nobody_says_that_it_is_cut_off) {
  InprocJob job(3);
  job.cut(1, 0);
  job.cut(1, 2);
  EXPECT_TRUE(job.run());
  ASSERT_TRUE(job.member(1).failure());
  EXPECT_THAT(job.member(1).failure()->what(), HasSubstr("is cut off"));
  EXPECT_THAT(job.member(0).failure()->what(), HasSubstr("rank 1 (member1) was lost"));
}

TEST(Inproc, fail_ends_every_member_with_its_words) {
  InprocJob job(3);
  job.member(1).fail(Error(Code::mismatch, "12 parameters here, 13 on rank 0", "rank 1"));
  EXPECT_TRUE(job.run());
  for (Rank rank : {0u, 1u, 2u}) {
    ASSERT_TRUE(job.member(rank).failure());
    EXPECT_EQ(job.member(rank).failure()->code(), Code::mismatch);
  }
}

}  // namespace
}  // namespace shoal::net
