// Members die, links are cut, members stand still, at every moment of an all-reduce: what all survivors have is the same, and right. SHOAL_SEEDS
// widens the random search, SHOAL_FIRST_SEED begins it elsewhere.
#include <random>

#include "shoal/collective/build.h"
#include "tests/collective/surviving_members.h"
#include "tests/from_environment.h"

namespace shoal::collective {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Events of the scripted network up to the end.
int events_of(const SurvivingScript& script) {
  SurvivingMembers members(script);
  int events = 0;
  members.job.run([&] {
    ++events;
    return false;
  });
  members.expect_all_or_nothing();
  EXPECT_EQ(members.shrunk(), 0);
  return events;
}

struct Swept {
  net::Rank members;
  std::string builder;
};

class SurvivorsOf : public testing::TestWithParam<Swept> {};

// Each victim, after each event of two sums (of few, unless SHOAL_KILLS asks for more; nightly of all).
TEST_P(SurvivorsOf, agree_whoever_dies_after_any_event) {
  int shrunk = 0, failed = 0;
  for (const bool in_place : {false, true}) {
    const SurvivingScript script{.members = GetParam().members, .builder = GetParam().builder, .operations = 2, .in_place = in_place};
    const int events = events_of(script);
    const auto stride = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(events) * script.members / from_environment("SHOAL_KILLS", 300));
    for (std::uint64_t kill_after = 0; kill_after < static_cast<std::uint64_t>(events); kill_after += stride) {
      for (net::Rank victim = 0; victim < script.members; ++victim) {
        SCOPED_TRACE("rank " + std::to_string(victim) + " dies after event " + std::to_string(kill_after) + (in_place ? ", in place" : ""));
        SurvivingMembers members(script);
        std::uint64_t passed = 0;
        members.job.run([&] { return ++passed > kill_after; });
        members.job.kill(victim);
        members.count_out(victim);
        members.run();
        members.expect_all_or_nothing();
        if (HasFatalFailure()) return;
        shrunk += members.shrunk();
        failed += members.failed();
      }
    }
  }
  EXPECT_GT(shrunk, 0);
  EXPECT_EQ(failed, 0);
}

std::vector<Swept> swept() {
  std::vector<Swept> all;
  for (const net::Rank members : {2u, 3u, 4u, 5u, 8u}) {
    for (const char* builder : {"ring", "direct", "chain", "halving_doubling"}) all.push_back({members, builder});
  }
  for (const net::Rank members : {2u, 3u, 4u, 8u}) all.push_back({members, kTrees});
  for (const net::Rank members : {3u, 4u, 6u}) all.push_back({members, kHierarchical});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kills, SurvivorsOf, testing::ValuesIn(swept()), [](const auto& tested) {
  return tested.param.builder + "_" + std::to_string(tested.param.members);
});

// Goal: trees around the hole. Method: one slow member of four; another dies before the first sum, then one more. Oracle: a leaf sends the whole once,
// to one other; in any program but trees it sends 4/3 of it among three, or to two.
TEST(Survivors, add_by_trees_around_who_is_lost) {
  for (const net::Rank victim : {0u, 1u, 2u}) {
    SCOPED_TRACE("rank " + std::to_string(victim) + " dies");
    const SurvivingScript script{.members = 4, .builder = kTrees, .count = 100'000, .operations = 3};
    SurvivingMembers members(script);
    members.job.kill(victim);
    members.count_out(victim);
    members.run();
    members.expect_all_or_nothing();
    EXPECT_EQ(members.shrunk(), script.operations);
    const auto whole = static_cast<double>(script.count * sizeof(std::int32_t) * static_cast<std::uint64_t>(script.operations));
    std::vector<double> sent;
    for (net::Rank to = 0; to < 3; ++to) {
      if (to != victim) sent.push_back(static_cast<double>(members.job.member(3).link(to).sent));
    }
    std::ranges::sort(sent);
    EXPECT_LT(sent[0], 0.05 * whole);
    EXPECT_NEAR(sent[1], whole, 0.05 * whole);
  }
}

// Goal: a member sees who waits in an operation that it has not started. Method: rank 2 of three starts one that it does not finish; rank 1 dies, which
// has it begun anew. Relation: ahead of rank 0 is nobody, then rank 2, then again.
TEST(Survivors, see_who_is_ahead) {
  struct Unending final : Work {
    void begin(const Attempt&, net::Done owed) override { held = std::move(owed); }
    void stop(const net::Failure& why) override { std::exchange(held, nullptr)(why); }
    void committed(const std::vector<net::Rank>&) override {}
    void failed(const net::Failure&) override {}
    net::Done held;
  };
  net::InprocJob job(3, {.on_peer_lost = net::OnPeerLost::shrink});
  std::vector<std::unique_ptr<Survivors>> groups;
  for (net::Rank rank = 0; rank < 3; ++rank) groups.push_back(std::make_unique<Survivors>(job.member(rank), std::vector<net::Rank>{0, 1, 2}, SurvivingMembers::kChannel));
  EXPECT_TRUE(groups[0]->ahead().empty());
  job.member(2).post([&] { groups[2]->start(std::make_shared<Unending>(), 1, seconds(30), "unending"); });
  const std::vector<net::Rank> second{2};
  ASSERT_TRUE(job.run([&] { return groups[0]->ahead() == second; }));
  job.kill(1);
  ASSERT_TRUE(job.run([&] { return groups[0]->members().size() == 2; }));
  ASSERT_TRUE(job.run([&] { return groups[0]->ahead() == second; }));
}

// Several faults a run, drawn: kills close together and far apart, cut links, members that stand still.
TEST(Survivors, agree_whatever_happens) {
  int shrunk = 0, failed = 0, outcast = 0;
  for (const std::uint64_t seed : seeds(300)) {
    std::mt19937_64 draw(seed);
    auto builders = builder_names(Collective::all_reduce);
    builders.insert(builders.end(), {kTrees, kHierarchical});
    SurvivingScript script{.members = static_cast<net::Rank>(3 + draw() % 6), .builder = builders[draw() % builders.size()], .operations = 4};
    script.count = draw() % 3 == 0 ? draw() % 5 : draw() % 3000;
    script.in_place = draw() % 2 == 0;
    script.seed = seed;
    script.patience = draw() % 4 == 0 ? Nanoseconds(milliseconds(1 + draw() % 7000)) : Nanoseconds(seconds(30));
    if (draw() % 2 == 0) script.pause = microseconds(draw() % 400);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(script.members) + " members, " + std::to_string(script.count) + " elements, " + script.builder);
    SurvivingMembers members(script);
    const std::size_t faults = 1 + draw() % (script.members - 1);
    for (std::size_t f = 0; f < faults; ++f) {
      const auto victim = static_cast<net::Rank>(draw() % script.members), other = static_cast<net::Rank>(draw() % script.members);
      const std::uint64_t within = draw() % 2 == 0 ? 4'000 : 20'000;  // drawn by itself: compilers differ in which operand comes first
      const Nanoseconds at = microseconds(draw() % within);
      const std::uint64_t kind = draw() % 6;
      if (kind == 0) {
        if (other != victim) members.job.at(at, [&members, victim, other] { members.job.cut(victim, other); });
      } else {
        members.count_out(victim);
        members.job.at(at, [&members, victim, kind] { kind == 1 ? members.job.freeze(victim) : members.job.kill(victim); });
      }
    }
    members.run();
    bool any = false;
    for (net::Rank rank = 0; rank < script.members; ++rank) {
      any |= members.survives(rank);
      outcast += members.job.member(rank).failure() != nullptr;
    }
    if (!any) continue;
    members.expect_all_or_nothing();
    if (HasFatalFailure()) return;
    shrunk += members.shrunk();
    failed += members.failed();
  }
  EXPECT_GT(shrunk, 0);
  EXPECT_GT(failed, 0) << "no deadline struck";
  EXPECT_GT(outcast, 0) << "nobody was cut off";
}

}  // namespace
}  // namespace shoal::collective
