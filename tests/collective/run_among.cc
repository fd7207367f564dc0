// Some members of a group as one of their own: others have no part in what they do, but a loss among those ends it.
#include <gtest/gtest.h>

#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

constexpr std::uint32_t kAll = 4;
constexpr std::uint64_t kCount = 6000;

// Members 2 and 0, in this order, of a group of four: a copy from 2 to 0.
struct Two {
  Two() {
    for (const net::Rank rank : members) some.push_back(group.runners[rank]->among(members));
    collective::Run run;
    run.type = DType::i32;
    run.slice_bytes = 1024;
    run.operation = 5;
    for (const auto& runner : some) exercise.start(*runner, verified, run);
  }
  const std::vector<net::Rank> members{2, 0};
  ScriptedGroup group{kAll, {.seed = 1, .on_peer_lost = net::OnPeerLost::shrink, .eager = 4096}};
  Verified verified = verify(build(Collective::broadcast, "chain", 2));
  Exercise<std::int32_t> exercise{verified.program(), kCount, small_number};
  std::vector<std::shared_ptr<Runner>> some;
};

TEST(RunAmong, the_others_neither_give_nor_get) {
  Two two;
  ASSERT_TRUE(two.group.job.run());
  two.exercise.expect_right(sum_in_rank_order);
  EXPECT_GE(two.group.job.member(0).link(2).received, kCount * sizeof(std::int32_t));
  for (const net::Rank other : {1u, 3u}) {
    for (net::Rank rank = 0; rank < kAll; ++rank) {
      if (rank == other) continue;
      EXPECT_EQ(two.group.job.member(other).link(rank).received, 0u) << rank << " to " << other;
    }
  }
}

// Killed under way is one who has no part in it: all who are left begin again together, so nobody may be left in what was.
TEST(RunAmong, a_loss_among_the_others_ends_it) {
  Two whole;
  ASSERT_TRUE(whole.group.job.run([&] { return whole.exercise.all_done(); }));
  const auto length = whole.group.job.now() - Instant{};
  Two two;
  two.group.job.at(length / 4, [&] { two.group.job.kill(3); });
  ASSERT_TRUE(two.group.job.run());
  for (std::uint32_t place = 0; place < 2; ++place) {
    ASSERT_EQ(two.exercise.part(place).done, 1);
    ASSERT_TRUE(two.exercise.part(place).why) << "place " << place << " went on";
    EXPECT_EQ(two.exercise.part(place).why->code(), Code::peer_lost);
  }
}

TEST(RunAmong, of_a_group_that_has_ended_it_ends_at_once) {
  ScriptedGroup group(3, {.on_peer_lost = net::OnPeerLost::shrink});
  group.job.kill(2);
  ASSERT_TRUE(group.job.run());
  const auto some = group.runners[0]->among({0, 1});
  const Verified verified = verify(build(Collective::broadcast, "chain", 2));
  Exercise<std::int32_t> exercise(verified.program(), 4, small_number);
  ASSERT_TRUE(group.job.run());
  collective::Run run;
  run.type = DType::i32;
  exercise.start(*some, verified, run);
  ASSERT_TRUE(group.job.run());
  ASSERT_EQ(exercise.part(0).done, 1);
  ASSERT_TRUE(exercise.part(0).why);
  EXPECT_EQ(exercise.part(0).why->code(), Code::peer_lost);
}

}  // namespace
}  // namespace shoal::collective
