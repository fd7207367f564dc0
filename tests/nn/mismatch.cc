// Goal: members in different collectives never hang and never take each other's bytes: the group ends on all of them with
// one and the same line, which names two that differ. With checks on, before a byte has moved.
#include <gmock/gmock.h>

#include "tests/nn/scripted_members.h"

namespace shoal::nn {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using Numbers = std::vector<std::int32_t>;

constexpr net::Rank kDiffering = 3;
constexpr const char* kHint = " (all members must call the same collectives in the same order, with equal sizes and types)";

// One member of three calls something else. `usual` and `odd` are how the line shows the two.
struct Difference {
  const char* title;
  net::Rank who;
  Collect (*usual_call)(Numbers& values, net::Rank rank);
  Collect (*odd_call)(Numbers& values, net::Rank rank);
  const char *usual, *odd;
};

Collect sum(Numbers& values, net::Rank) { return all_reduce(values); }
Collect largest(Numbers& values, net::Rank) { return all_reduce(values, ReduceOp::max); }
Collect barrier_call(Numbers& values, net::Rank) { return barrier(values); }
Collect shorter(Numbers& values, net::Rank) {
  Collect what = all_reduce(values);
  what.total /= 2;
  return what;
}
Collect floats(Numbers& values, net::Rank) {
  Collect what = all_reduce(values);
  what.type = DType::f32;
  return what;
}
Collect from_0(Numbers& values, net::Rank rank) { return broadcast(values, 0, rank); }
Collect from_1(Numbers& values, net::Rank rank) { return broadcast(values, 1, rank); }

constexpr const char* kSum = "all_reduce of 5000 i32 (sum)";
const Difference kDifferences[] = {
    {"size", 0, sum, shorter, kSum, "all_reduce of 2500 i32 (sum)"},
    {"type", 1, sum, floats, kSum, "all_reduce of 5000 f32 (sum)"},
    {"reduction", 2, sum, largest, kSum, "all_reduce of 5000 i32 (max)"},
    {"operation", 2, sum, from_0, kSum, "broadcast of 20000 u8, root 0"},
    {"barrier", 0, sum, barrier_call, kSum, "barrier"},
    {"root", 2, from_0, from_1, "broadcast of 20000 u8, root 0", "broadcast of 20000 u8, root 1"},
    {"root_that_nobody_hears", 1, from_0, from_1, "broadcast of 20000 u8, root 0", "broadcast of 20000 u8, root 1"},
};

class Differing : public testing::TestWithParam<std::tuple<Difference, bool>> {
 protected:
  // The lines that may tell of it: the odd one beside any of the others, the lower rank first.
  static std::vector<std::string> words(const Difference& difference) {
    std::vector<std::string> lines;
    for (net::Rank other = 0; other < kDiffering; ++other) {
      if (other == difference.who) continue;
      const std::string odd = "rank " + std::to_string(difference.who) + " calls " + difference.odd;
      const std::string usual = "rank " + std::to_string(other) + " calls " + difference.usual;
      lines.push_back("operation 1: " + (difference.who < other ? odd + ", " + usual : usual + ", " + odd) + kHint);
    }
    return lines;
  }
};

TEST_P(Differing, ends_on_all_members_with_the_same_line) {
  const auto& [difference, check] = GetParam();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ScriptedMembers members(kDiffering, {.seed = seed}, {.check = check});
    std::vector<Numbers> values(kDiffering, counting(5000)), next(kDiffering, Numbers(1));
    for (net::Rank rank = 0; rank < kDiffering; ++rank) {
      members.job.at(std::chrono::microseconds(100 * (seed * (rank + 1) % 7)), [&, rank] {
        const auto call = rank == difference.who ? difference.odd_call : difference.usual_call;
        members.start(rank, call(values[rank], rank));
      });
    }
    // A root may have handed its bytes over and go on: what it does next ends as well.
    for (net::Rank rank = 0; rank < kDiffering; ++rank) members.job.at(1ms, [&, rank] { members.start(rank, barrier(next[rank])); });
    auto lines = members.run();
    EXPECT_LT(members.took(), 2s);
    if (check) {
      for (net::Rank rank = 0; rank < kDiffering; ++rank) {
        for (net::Rank to = 0; to < kDiffering; ++to) EXPECT_LE(members.job.bytes_sent(rank, to), 4 * sizeof(Note));
      }
    } else {
      std::erase(lines, "done");
    }
    EXPECT_GE(lines.size(), kDiffering);
    EXPECT_THAT(lines, Each(lines.front()));
    EXPECT_THAT(words(difference), testing::Contains(lines.front()));
    Outcome& late = members.start(0, all_reduce(next[0]));
    members.run();
    EXPECT_EQ(late.line(), lines.front()) << "what comes later ends at once, with the cause";
  }
}

INSTANTIATE_TEST_SUITE_P(Mismatch, Differing, testing::Combine(testing::ValuesIn(kDifferences), testing::Bool()),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param).title) + (std::get<1>(tested.param) ? "_checked" : "");
                         });

// Rank 0 decides which difference is told, even before it calls anything itself.
TEST(Mismatch, two_that_differ_are_found_while_rank_0_computes) {
  ScriptedMembers members(kDiffering);
  Numbers one(8), other(9);
  members.start(1, all_reduce(one));
  members.start(2, all_reduce(other));
  EXPECT_THAT(members.run(), Each("operation 1: rank 1 calls all_reduce of 8 i32 (sum), rank 2 calls all_reduce of 9 i32 (sum)" +
                                  std::string(kHint)));
  EXPECT_LT(members.took(), 2s);
}

// All members, all different: whichever pair is found, everybody reads the same.
TEST(Mismatch, members_that_all_differ_read_the_same_line) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ScriptedMembers members(5, {.seed = seed});
    std::vector<Numbers> values;
    for (net::Rank rank = 0; rank < 5; ++rank) values.push_back(Numbers(1000 + rank));
    for (net::Rank rank = 0; rank < 5; ++rank) members.start(rank, all_reduce(values[rank]));
    const auto lines = members.run();
    EXPECT_THAT(lines, Each(AllOf(lines.front(), testing::StartsWith("operation 1: rank "))));
  }
}

// A member that reads of the difference and leaves at once does not make it a lost peer for the others.
TEST(Mismatch, a_member_that_leaves_upon_it_changes_no_line) {
  for (const net::Rank leaver : {0u, 1u}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      // Delays so different that a leave two steps away may be heard before rank 0's word.
      ScriptedMembers members(kDiffering, {.seed = seed, .delay_min = 1us, .delay_max = 2ms});
      std::vector<Numbers> values = {Numbers(8), Numbers(8), Numbers(9)};
      std::vector<Outcome*> outcomes;
      for (net::Rank rank = 0; rank < kDiffering; ++rank) outcomes.push_back(&members.start(rank, all_reduce(values[rank])));
      ASSERT_TRUE(members.job.run([&] { return outcomes[leaver]->ended == 1; }));
      members.leave(leaver);
      members.job.kill(leaver);
      EXPECT_THAT(members.run(), Each(outcomes[leaver]->line())) << "seed " << seed;
      EXPECT_EQ(outcomes[leaver]->why->code(), Code::mismatch);
    }
  }
}

// Uneven all_to_all calls differ between members by their nature.
TEST(Mismatch, sizes_that_may_differ_are_not_compared) {
  for (const bool check : {false, true}) {
    ScriptedMembers members(2, {}, {.check = check});
    // Rank 0 sends 3 bytes to rank 1 and gets 5; nobody sends itself anything. Chunk s * 2 + d goes from s to d.
    std::vector<std::byte> three(3, std::byte{3}), five(5, std::byte{5}), got_three(3), got_five(5);
    Collect what;
    what.operation = Operation::all_to_all;
    what.comparable = false;
    what.layout = collective::Layout{{0, 3, 5, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    what.total = 3;
    what.buffers = {three.data(), got_five.data()};
    members.start(0, what);
    what.total = 5;
    what.buffers = {five.data(), got_three.data()};
    members.start(1, what);
    EXPECT_THAT(members.run(), Each("done"));
    EXPECT_EQ(got_three, three);
    EXPECT_EQ(got_five, five);
  }
}

}  // namespace
}  // namespace shoal::nn
