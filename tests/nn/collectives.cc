// Goal: collectives of a group give what their callers expect, whatever the timing, and in the order of their calls.
// Method: members on a scripted network; oracle: plain loops over whole numbers.
#include <gmock/gmock.h>

#include "shoal/topo/generate.h"
#include "tests/nn/scripted_members.h"

namespace shoal::nn {
namespace {

using testing::Each;
using Numbers = std::vector<std::int32_t>;

// Sizes: nothing, one, urgent, and many slices. With checks on, nothing but the order of events may change.
TEST(Collectives, every_member_has_the_sum) {
  for (const bool check : {false, true}) {
    for (const net::Rank size : {1u, 2u, 3u, 5u, 8u}) {
      for (const std::size_t count : {0u, 1u, 7u, 1000u, 200'003u}) {
        SCOPED_TRACE(testing::Message() << "check " << check << ", size " << size << ", count " << count);
        ScriptedMembers members(size, {.seed = count + size}, {.check = check});
        std::vector<Numbers> values(size);
        for (net::Rank rank = 0; rank < size; ++rank) {
          values[rank] = counting(count, static_cast<std::int32_t>(rank));
          members.start(rank, all_reduce(values[rank]));
        }
        EXPECT_THAT(members.run(), Each("done"));
        Numbers expected(count);
        for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<std::int32_t>(size * i + size * (size - 1) / 2);
        for (net::Rank rank = 0; rank < size; ++rank) ASSERT_EQ(values[rank], expected) << "rank " << rank;
      }
    }
  }
}

// Four members in a circle: half of the data each way round is what its links bear, and no program is as quick.
TEST(Collectives, go_by_the_form_of_a_known_network_where_that_is_quickest) {
  Group::Settings settings;
  settings.link.network = collective::KnownNetwork::made_for(topo::grid({{4}, {true}, {12.5e6, {}}, {}}));
  ASSERT_EQ(collective::choose(collective::Collective::all_reduce, 4, 4 * 200'003, settings.link), collective::kTorus);
  for (const std::size_t count : {1u, 200'003u}) {
    ScriptedMembers members(4, {.seed = count}, settings);
    std::vector<Numbers> values(4);
    for (net::Rank rank = 0; rank < 4; ++rank) {
      values[rank] = counting(count, static_cast<std::int32_t>(rank));
      members.start(rank, all_reduce(values[rank]));
    }
    EXPECT_THAT(members.run(), Each("done"));
    Numbers expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<std::int32_t>(4 * i + 6);
    EXPECT_THAT(values, Each(expected)) << count;
  }
}

// Four members in a circle again: whoever is the root, half of what it tells or is told goes each way round, on its two links.
TEST(Collectives, go_by_trees_from_each_root_of_a_known_network_where_they_are_quickest) {
  constexpr std::size_t count = 200'003;
  constexpr double bytes = 4.0 * count;
  Group::Settings settings;
  settings.link.network = collective::KnownNetwork::made_for(topo::grid({{4}, {true}, {12.5e6, {}}, {}}));
  for (net::Rank root = 0; root < 4; ++root) {
    SCOPED_TRACE(root);
    for (const auto kind : {collective::Collective::broadcast, collective::Collective::reduce})
      ASSERT_EQ(collective::choose(kind, 4, bytes, settings.link, false, root), collective::kTrees);
    ScriptedMembers members(4, {.seed = root + 1}, settings);
    std::vector<Numbers> told(4, Numbers(count)), added(4);
    told[root] = counting(count, 7);
    for (net::Rank rank = 0; rank < 4; ++rank) members.start(rank, broadcast(told[rank], root, rank));
    EXPECT_THAT(members.run(), Each("done"));
    EXPECT_THAT(told, Each(counting(count, 7)));
    for (const net::Rank next : {(root + 1) % 4, (root + 3) % 4})
      EXPECT_NEAR(static_cast<double>(members.job.bytes_sent(root, next)), bytes / 2, bytes / 50);
    for (net::Rank rank = 0; rank < 4; ++rank) {
      added[rank] = counting(count, static_cast<std::int32_t>(rank));
      members.start(rank, reduce(added[rank], root));
    }
    EXPECT_THAT(members.run(), Each("done"));
    Numbers expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<std::int32_t>(4 * i + 6);
    EXPECT_EQ(added[root], expected);
  }
}

TEST(Collectives, every_member_has_what_the_root_broadcasts) {
  for (const net::Rank root : {0u, 1u, 4u}) {
    ScriptedMembers members(5);
    std::vector<Numbers> values(5, Numbers(30'001));
    values[root] = counting(30'001, 7);
    for (net::Rank rank = 0; rank < 5; ++rank) members.start(rank, broadcast(values[rank], root, rank));
    EXPECT_THAT(members.run(), Each("done"));
    EXPECT_THAT(values, Each(counting(30'001, 7))) << "root " << root;
  }
}

// Many at once, each member at its own pace: each gets its own answer.
TEST(Collectives, many_may_be_open_and_none_takes_anothers_bytes) {
  constexpr net::Rank kSize = 3;
  constexpr std::size_t kCalls = 40;
  ScriptedMembers members(kSize, {.seed = 5});
  std::vector<std::vector<Numbers>> values(kSize, std::vector<Numbers>(kCalls));
  for (net::Rank rank = 0; rank < kSize; ++rank) {
    for (std::size_t call = 0; call < kCalls; ++call) {
      values[rank][call] = Numbers(1 + call % 3 * 900, static_cast<std::int32_t>(call));
      members.job.at(std::chrono::microseconds(90 * call * (rank + 1)),
                     [&, rank, call] { members.start(rank, all_reduce(values[rank][call])); });
    }
  }
  const auto lines = members.run();
  EXPECT_EQ(lines.size(), kSize * kCalls);
  EXPECT_THAT(lines, Each("done"));
  for (const auto& of_one : values) {
    for (std::size_t call = 0; call < kCalls; ++call) EXPECT_THAT(of_one[call], Each(3 * call));
  }
}

// A barrier is through on no member before all are in it, and before all that was called ahead of it is done here.
TEST(Collectives, a_barrier_holds_everybody) {
  ScriptedMembers members(3);
  std::vector<Numbers> large(3, counting(100'000)), token(3, Numbers(1));
  std::vector<Outcome*> sums, barriers;
  for (net::Rank rank : {0u, 1u}) {
    sums.push_back(&members.start(rank, all_reduce(large[rank])));
    barriers.push_back(&members.start(rank, barrier(token[rank])));
  }
  members.pass(3s);
  EXPECT_EQ(barriers[0]->line(), "open");
  EXPECT_EQ(barriers[1]->line(), "open");
  sums.push_back(&members.start(2, all_reduce(large[2])));
  barriers.push_back(&members.start(2, barrier(token[2])));
  members.job.run([&] { return barriers[0]->ended + barriers[1]->ended + barriers[2]->ended > 0; });
  for (const std::size_t rank : {0u, 1u, 2u}) {
    EXPECT_TRUE(!barriers[rank]->ended || sums[rank]->ended) << "rank " << rank;
  }
  EXPECT_THAT(members.run(), Each("done"));
}

}  // namespace
}  // namespace shoal::nn
