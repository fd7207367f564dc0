// Goal: a link that becomes slow under way leads all members to the same other plan at the same iteration, without a probe, and no sum changes.
// Method: a plan's program run again and again on a scripted network, with each member's rates of links and the first one's drift, as training has them.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "shoal/collective/link_rates.h"
#include "shoal/exchange/drift.h"
#include "shoal/exchange/planner.h"
#include "tests/collective/scripted_group.h"

namespace shoal::exchange {
namespace {

using namespace collective;

constexpr std::uint32_t kMembers = 4;
constexpr double kNic = 25e6, kSlow = 5e6;  // bytes/s
constexpr std::uint64_t kWeights = 300'000;  // a sample an iteration
constexpr int kDrift = Drift::kWindow;

struct Training {
  Training() : group(kMembers, {.delay_min = Nanoseconds(50'000), .delay_max = Nanoseconds(50'000), .rate = kNic}) {
    known.rate = kNic;
    known.fan_in = kNic;
    topo::Topology star;
    star.hosts = {"a", "b", "c", "d"};
    star.switches = {"s"};
    for (topo::Node host = 0; host < kMembers; ++host) star.link_both_ways(host, kMembers, kNic);
    known.network = KnownNetwork::without_trees(star);
    measured = known;
    plans.assign(kMembers, make_plan({{"weight", DType::f32, kWeights, 0, 0.01}}, kMembers, known, {0.01, 0.02}));
    rates.assign(kMembers, LinkRates(kMembers));
  }

  // One iteration's exchange, to which the last member comes late; returns its seconds.
  double iterate(Nanoseconds late = {}) {
    const Unit& unit = plans[0].units.at(0);
    for (const ExchangePlan& plan : plans) EXPECT_EQ(plan.hash(), plans[0].hash());
    const Verified program = program_named(Collective::all_reduce, unit.way, kMembers, 0, known.network.get());
    // Fractions, so that another order of addition has other bits; the same whatever the program's chunks are.
    const Layout layout = Layout::even(program.program(), 0, kWeights);
    const auto value = [&](std::uint32_t rank, std::uint32_t chunk, std::uint64_t k) { return 1.0 / (1 + 3 * rank + (layout.input[chunk] + k) % 97); };
    Exercise<float> exercise(program.program(), kWeights, value);
    const Instant began = group.job.now();
    Run run;
    run.type = DType::f32;
    run.slice_bytes = unit.slice_bytes;
    run.operation = ++operation;
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
      group.job.at(began - Instant{} + (rank == kMembers - 1 ? late : Nanoseconds(0)), [&, rank] { exercise.start(*group.runners[rank], program, run); });
    }
    EXPECT_TRUE(group.job.run());
    if (sum.empty()) {
      exercise.expect_right(sum_in_rank_order);
      sum = exercise.part(0).output;
    }
    for (std::uint32_t rank = 0; rank < kMembers; ++rank) EXPECT_EQ(exercise.part(rank).output, sum) << "rank " << rank << " by " << unit.way;
    for (net::Rank rank = 0; rank < kMembers; ++rank) {
      std::vector<net::LinkStats> totals(kMembers);
      for (net::Rank peer = 0; peer < kMembers; ++peer) totals[peer] = group.job.member(rank).link(peer);
      rates[rank].look(totals);
    }
    return Seconds(group.job.now() - began).count();
  }

  // What members conclude together: true if what they have seen explains it.
  bool follow() {
    std::vector<std::string> told;
    for (const LinkRates& own : rates) told.push_back(words(own.rates()));
    const auto seen = as_seen(known, measured, heard_rates(told));
    if (!seen) return false;
    known = *seen;
    for (ExchangePlan& plan : plans) plan = fitted_to(plan, known);
    for (LinkRates& own : rates) own.begin_again();
    return true;
  }

  ScriptedGroup group;
  LinkModel known, measured;
  std::vector<ExchangePlan> plans;  // [member]
  std::vector<LinkRates> rates;
  std::vector<float> sum;           // the first one's, which was proved
  std::uint64_t operation = 0;
};

TEST(FollowedLinks, a_link_that_becomes_slow_changes_the_plan_of_all_once_and_no_sum) {
  constexpr int kSlowFrom = kDrift + 8, kFollowed = 3 * kDrift, kEnd = 5 * kDrift;
  Training training;
  ASSERT_EQ(training.plans[0].units.at(0).way, "direct");
  Drift drift(training.iterate());
  std::vector<double> took;
  std::vector<int> followed;
  for (int i = 0; i < kEnd; ++i) {
    if (i == kSlowFrom) training.group.job.rate(kMembers - 1, kSlow);
    took.push_back(training.iterate());
    if (!drift.after(took.back())) continue;
    ASSERT_TRUE(training.follow()) << "iteration " << i;
    drift.fitted();
    followed.push_back(i + 1);
  }
  EXPECT_EQ(followed, std::vector<int>{kFollowed});
  for (const ExchangePlan& plan : training.plans) EXPECT_EQ(plan.units.at(0).way, "chain");  // the slow member, at its end, sends the data once
  EXPECT_GT(took[kSlowFrom], 3 * took[kSlowFrom - 1]);
  EXPECT_LT(took.back(), 0.85 * took[kSlowFrom]);
  for (const topo::Link& link : training.known.network->topology().links) {
    const bool is_slow = link.from == kMembers - 1 || link.to == kMembers - 1;
    const double rate = is_slow ? kSlow : kNic;
    EXPECT_NEAR(link.rate, rate, 0.05 * rate);
  }
}

TEST(FollowedLinks, members_that_wait_for_one_who_is_late_see_no_change_in_links) {
  Training training;
  for (int i = 0; i < 3 * kDrift; ++i) training.iterate(std::chrono::milliseconds(i < kDrift ? 0 : 200));
  EXPECT_FALSE(training.follow());
}

}  // namespace
}  // namespace shoal::exchange
