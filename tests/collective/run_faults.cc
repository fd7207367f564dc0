// Whatever dies, whenever: every survivor's done runs once, with the loss or with the right result; nothing hangs, and
// after done nobody touches the caller's memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/collective/started.h"
#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kRanks = 4;
constexpr std::uint64_t kTotal = 6000;
constexpr std::int32_t kScribble = 0x5a5a5a5a;

collective::Run run_of(std::uint64_t operation) {
  collective::Run run;
  run.type = DType::i32;
  run.slice_bytes = 1024;
  run.operation = operation;
  run.label = "all-reduce of fc1.weight";
  return run;
}

// A collective of four members whose callers take their memory back as soon as done has run.
struct Trial {
  explicit Trial(const Builder& builder, std::uint64_t seed = 1, net::OnPeerLost on_peer_lost = net::OnPeerLost::fail)
      : verified(verify(build(builder.collective, builder.name, kRanks))),
        group(kRanks, {.seed = seed, .on_peer_lost = on_peer_lost, .eager = 4096}),
        exercise(verified.program(), kTotal, small_number) {
    const collective::Run run = run_of(5);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      auto& part = exercise.part(rank);
      group.runners[rank]->start(verified, part.layout, part.buffers(), run, [&part](const net::Failure& why) {
        ++part.done;
        part.why = why;
        if (why) std::fill(part.output.begin(), part.output.end(), kScribble);
      });
    }
  }
  // `gone`: the member whose process is no more.
  void expect_each_survivor_ended_well(std::uint32_t gone, Code code) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (rank == gone) continue;
      const auto& part = exercise.part(rank);
      ASSERT_EQ(part.done, 1) << "rank " << rank;
      if (!part.why) {
        exercise.expect_right(rank, sum_in_rank_order);
        continue;
      }
      EXPECT_EQ(part.why->code(), code);
      EXPECT_TRUE(std::all_of(part.output.begin(), part.output.end(), [](std::int32_t v) { return v == kScribble; }))
          << "rank " << rank << ": memory was written after done";
      EXPECT_TRUE(group.runners[rank]->waiting().empty());
    }
  }
  Verified verified;
  ScriptedGroup group;
  Exercise<std::int32_t> exercise;
};

class AnyBuilder : public testing::TestWithParam<Builder> {};

TEST_P(AnyBuilder, survives_a_kill_at_any_moment) {
  Trial whole(GetParam());
  ASSERT_TRUE(whole.group.job.run([&] { return whole.exercise.all_done(); }));
  const auto length = whole.group.job.now() - Instant{};
  int lost = 0;
  for (int moment = 0; moment < 40; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    Trial trial(GetParam());
    const std::uint32_t victim = static_cast<std::uint32_t>(moment) % kRanks;
    trial.group.job.at(length * moment / 40, [&] { trial.group.job.kill(victim); });
    ASSERT_TRUE(trial.group.job.run());
    EXPECT_LT(trial.group.job.now() - Instant{}, length + milliseconds(100));
    trial.expect_each_survivor_ended_well(victim, Code::peer_lost);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) lost += trial.exercise.part(rank).why != nullptr;
  }
  EXPECT_GT(lost, 0);
}

// Where the job goes on without the lost member, this group does not; those who are left form another.
TEST_P(AnyBuilder, of_a_lost_member_ends_and_another_group_goes_on) {
  Trial whole(GetParam());
  ASSERT_TRUE(whole.group.job.run([&] { return whole.exercise.all_done(); }));
  const auto length = whole.group.job.now() - Instant{};
  const Verified smaller = verify(build(GetParam().collective, GetParam().name, kRanks - 1));
  for (int moment = 0; moment < 20; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    Trial trial(GetParam(), 1, net::OnPeerLost::shrink);
    const std::uint32_t victim = static_cast<std::uint32_t>(moment) % kRanks;
    trial.group.job.at(length * moment / 20, [&] { trial.group.job.kill(victim); });
    ASSERT_TRUE(trial.group.job.run());
    trial.expect_each_survivor_ended_well(victim, Code::peer_lost);

    std::vector<net::Rank> left;
    for (net::Rank rank = 0; rank < kRanks; ++rank) {
      if (rank != victim) left.push_back(rank);
    }
    Exercise<std::int32_t> again(smaller.program(), kTotal, small_number);
    std::vector<std::unique_ptr<Runner>> runners;
    for (const net::Rank rank : left) {
      again.start(*runners.emplace_back(std::make_unique<Runner>(trial.group.job.member(rank), left)), smaller, run_of(6));
    }
    ASSERT_TRUE(trial.group.job.run());
    again.expect_right(sum_in_rank_order);
  }
}

TEST_P(AnyBuilder, survives_a_cut_link_and_a_frozen_member) {
  for (int moment = 0; moment < 12; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    Trial trial(GetParam());
    const bool cut = moment % 2 == 0;
    trial.group.job.at(std::chrono::microseconds(100 * moment),
                       [&] { cut ? trial.group.job.cut(1, 2) : trial.group.job.freeze(2); });
    ASSERT_TRUE(trial.group.job.run());
    EXPECT_LT(trial.group.job.now() - Instant{}, seconds(6));
    trial.expect_each_survivor_ended_well(cut ? kRanks : 2, Code::peer_lost);
  }
}

// A deadline on every member: each ends with its own word for it, and late bytes of the others land nowhere.
TEST_P(AnyBuilder, can_be_cancelled_at_any_moment) {
  for (int moment = 0; moment < 20; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    Trial trial(GetParam());
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      trial.group.job.at(std::chrono::microseconds(50 * moment + 37 * rank), [&, rank] {
        trial.group.runners[rank]->cancel(5, std::make_shared<const Error>(Code::timeout, "30 s are over"));
      });
    }
    ASSERT_TRUE(trial.group.job.run());
    trial.expect_each_survivor_ended_well(kRanks, Code::timeout);
  }
}

INSTANTIATE_TEST_SUITE_P(RunFaults, AnyBuilder, testing::ValuesIn(all_builders()), title_of);

TEST(RunFaults, a_runner_that_goes_away_cancels_what_is_open) {
  Trial trial({Collective::all_reduce, "direct"});
  trial.group.job.at(std::chrono::microseconds(150), [&] {
    for (auto& runner : trial.group.runners) runner.reset();
  });
  ASSERT_TRUE(trial.group.job.run());
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(trial.exercise.part(rank).done, 1);
    ASSERT_TRUE(trial.exercise.part(rank).why);
    EXPECT_EQ(trial.exercise.part(rank).why->code(), Code::cancelled);
  }
}

TEST(RunFaults, a_job_that_has_failed_ends_new_operations_with_its_cause) {
  ScriptedGroup group(2);
  group.job.member(0).fail(Error(Code::mismatch, "other shapes"));
  ASSERT_TRUE(group.job.run());
  const Verified verified = verify(build(Collective::all_reduce, "ring", 2));
  Exercise<std::int32_t> exercise(verified.program(), 100, small_number);
  collective::Run run;
  run.type = DType::i32;
  exercise.start(*group.runners[1], verified, run);
  ASSERT_TRUE(group.job.run());
  EXPECT_EQ(exercise.part(1).done, 1);
  ASSERT_TRUE(exercise.part(1).why);
  EXPECT_EQ(exercise.part(1).why->code(), Code::mismatch);
}

// Member 2 never starts: the others can say for whom they wait.
TEST(RunFaults, waiting_names_the_member_that_does_not_come) {
  ScriptedGroup group(3);
  const Verified verified = verify(build(Collective::all_reduce, "gather", 3));
  Exercise<std::int32_t> exercise(verified.program(), 3 * 256, small_number);
  collective::Run run;
  run.type = DType::i32;
  run.slice_bytes = 1024;
  run.label = "all-reduce of fc1.weight";
  for (std::uint32_t rank : {0u, 1u}) exercise.start(*group.runners[rank], verified, run);
  ASSERT_TRUE(group.job.run());
  EXPECT_THAT(group.runners[0]->waiting(), testing::Contains("all-reduce of fc1.weight: 0 of 3 slices from rank 2"));
  exercise.start(*group.runners[2], verified, run);
  ASSERT_TRUE(group.job.run());
  exercise.expect_right(sum_in_rank_order);
  EXPECT_TRUE(group.runners[0]->waiting().empty());
}

// One member of two has begun an all-reduce of four numbers, from another thread's point of view.
struct Alone {
  ScriptedGroup group{2};
  Verified verified = verify(build(Collective::all_reduce, "gather", 2));
  Exercise<std::int32_t> exercise{verified.program(), 4, small_number};
  Started begin() {
    collective::Run run;
    run.type = DType::i32;
    run.label = "all-reduce of fc1.weight";
    return {*group.runners[0], verified, exercise.part(0).layout, exercise.part(0).buffers(), run};
  }
};

TEST(RunFaults, a_deadline_says_for_whom_it_waited_and_what_to_do) {
  Alone alone;
  Started started = alone.begin();
  try {
    started.wait(alone.group.job.now() + seconds(30), "wait longer");
    FAIL() << "there is no other member";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "all-reduce of fc1.weight: the deadline has passed, waiting for "
                 "all-reduce of fc1.weight: 0 of 1 slices from rank 1 (wait longer)");
  }
  EXPECT_EQ(alone.group.job.now() - Instant{}, seconds(30));
}

TEST(RunFaults, a_run_that_gets_no_memory_says_how_much_it_wanted) {
  Alone alone;
  Layout layout = alone.exercise.part(0).layout;
  layout.input.back() = std::uint64_t{1} << 50;  // elements
  collective::Run run;
  run.type = DType::i32;
  run.scaling.prescale = 2;  // into a copy of the input
  run.label = "all-reduce of fc1.weight";
  Started started(*alone.group.runners[0], alone.verified, layout, alone.exercise.part(0).buffers(), run);
  try {
    started.wait(alone.group.job.now() + seconds(30));
    FAIL() << "there is no such machine";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "all-reduce of fc1.weight: out of memory: 9007199254740992 bytes for windows and weighted input");
  }
  EXPECT_TRUE(alone.group.runners[0]->waiting().empty());
}

// A loop that does not give the memory back: the process ends, because its caller would go on with that memory.
TEST(RunFaultsDeathTest, a_loop_that_stands_still_ends_the_process_with_one_line) {
  Alone alone;
  Started started = alone.begin();
  alone.group.job.freeze(0);
  EXPECT_EXIT(started.wait(alone.group.job.now() + seconds(30)), testing::ExitedWithCode(1),
              "^shoal: all-reduce of fc1.weight: the network's loop does not run any more\n$");
}

}  // namespace
}  // namespace shoal::collective
