// Every program of every builder, for every number of members and every root: proved, and of the declared cost.
#include "shoal/collective/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "tests/collective/scripted_group.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

bool rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

void verify_all(std::uint32_t ranks) {
  for (const Collective collective : kCollectives) {
    for (const std::string& name : builder_names(collective)) {
      for (std::uint32_t root = 0; root < (rooted(collective) ? ranks : 1); ++root) {
        SCOPED_TRACE(std::string(shoal::collective::name(collective)) + " " + name + ", ranks " + std::to_string(ranks) +
                     ", root " + std::to_string(root));
        try {
          const Verified verified = verify(build(collective, name, ranks, root));
          EXPECT_EQ(verified.program().name, name);
          EXPECT_EQ(verified.program().collective, collective);
          EXPECT_EQ(verified.program().ranks, ranks);
          EXPECT_EQ(verified.program().root, root);
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
}

TEST(Build, every_program_is_proved_for_1_to_9_members_and_every_root) {
  for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) verify_all(ranks);
}

TEST(Build, every_program_is_proved_for_16_and_17_members) {
  verify_all(16);
  verify_all(17);
}

// Chunks that each member sends, by unrolling the loops.
std::vector<std::uint64_t> chunks_sent(const Program& program) {
  std::vector<std::uint64_t> sent(program.ranks);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (const Lane& lane : program.lanes[rank]) {
      for (const Loop& loop : lane) {
        for (const Op& op : loop.ops) sent[rank] += op.kind == OpKind::send ? loop.times : 0;
      }
    }
  }
  return sent;
}

// The headers' formulas in chunks: direct, ring and halving-doubling move the least, 2(N-1) of N chunks a member.
TEST(Build, members_send_what_the_formula_says) {
  for (const std::uint32_t ranks : {2U, 3U, 5U, 8U}) {
    SCOPED_TRACE(ranks);
    EXPECT_THAT(chunks_sent(direct_all_reduce(ranks)), testing::Each(2 * (ranks - 1)));
    EXPECT_THAT(chunks_sent(ring_all_reduce(ranks)), testing::Each(2 * (ranks - 1)));
    EXPECT_THAT(chunks_sent(gather_all_reduce(ranks)), testing::Each(ranks - 1));
    EXPECT_THAT(chunks_sent(direct_reduce_scatter(ranks)), testing::Each(ranks - 1));
    EXPECT_THAT(chunks_sent(ring_reduce_scatter(ranks)), testing::Each(ranks - 1));
    EXPECT_THAT(chunks_sent(direct_all_gather(ranks)), testing::Each(ranks - 1));
    EXPECT_THAT(chunks_sent(ring_all_gather(ranks)), testing::Each(ranks - 1));
    EXPECT_THAT(chunks_sent(direct_all_to_all(ranks)), testing::Each(ranks - 1));
  }
  EXPECT_THAT(chunks_sent(halving_doubling_all_reduce(8)), testing::Each(2 * 7));
  EXPECT_THAT(chunks_sent(recursive_doubling_all_reduce(8)), testing::Each(3));
  EXPECT_THAT(chunks_sent(chain_all_reduce(4)), testing::ElementsAre(1, 2, 2, 1));
}

// A ring over many members stays small as data: loops over ranks are loops.
TEST(Build, a_ring_of_4096_members_is_seven_ops_a_member) {
  const Program program = ring_all_reduce(4096);
  std::size_t ops = 0;
  for (const Lane& lane : program.lanes[17]) {
    for (const Loop& loop : lane) ops += loop.ops.size();
  }
  EXPECT_EQ(ops, 7U);
}

// In the k-th lane of contributions every member is sent to by exactly one other.
TEST(Build, direct_programs_stagger_their_sends) {
  const Program program = direct_all_reduce(5);
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    std::set<std::uint32_t> peers;
    for (std::uint32_t rank = 0; rank < 5; ++rank) peers.insert(program.lanes[rank][lane][0].ops[0].peer);
    EXPECT_EQ(peers.size(), 5U) << "lane " << lane;
  }
}

TEST(Build, programs_that_allow_one_memory_for_input_and_output_say_so) {
  EXPECT_TRUE(verify(direct_all_reduce(4)).in_place());
  EXPECT_TRUE(verify(ring_all_reduce(4)).in_place());
  EXPECT_TRUE(verify(chain_all_reduce(4)).in_place());
  EXPECT_FALSE(verify(gather_all_reduce(4)).in_place());  // its fold does not wait for the sends of its own input
  EXPECT_TRUE(verify(binomial_broadcast(4, 1)).in_place());
  EXPECT_FALSE(verify(direct_all_gather(4)).in_place());  // input and output are laid out differently
}

TEST(Build, refusals_name_what_is_allowed) {
  EXPECT_EQ(refusal([] { build(Collective::all_gather, "tree", 4); }),
            "no program \"tree\" for all_gather (one of direct, ring)");
  EXPECT_EQ(refusal([] { ring_all_reduce(0); }), "ring: 0 members; a program has 1 to 4096");
  EXPECT_EQ(refusal([] { ring_all_reduce(5000); }), "ring: 5000 members; a program has 1 to 4096");
  EXPECT_EQ(refusal([] { flat_gather(4, 4); }), "flat: root 4 of 4 members");
  EXPECT_EQ(refusal([] { direct_all_reduce(513); }), "direct: 513 members; at most 512 where every pair talks (take ring)");
}

TEST(Build, programs_with_servers_are_proved_and_survive_json) {
  for (std::uint32_t ranks = 2; ranks <= 8; ++ranks) {
    for (std::uint32_t servers = 0; servers < ranks; ++servers) {
      const Verified verified = verify(served_all_reduce(ranks, servers));
      EXPECT_EQ(workers(verified.program()), ranks - servers);
      EXPECT_EQ(to_json(program_from_json(to_json(verified.program()))), to_json(verified.program()));
    }
    EXPECT_THROW(served_all_reduce(ranks, ranks), Error);
  }
  auto more = served_all_reduce(4, 1);
  more.servers = 2;  // then rank 2 may not contribute
  EXPECT_THROW(verify(more), Error);
  auto fewer = served_all_reduce(4, 2);
  fewer.servers = 1;  // then the contribution of rank 2 is missing
  EXPECT_THROW(verify(fewer), Error);
}

}  // namespace
}  // namespace shoal::collective
