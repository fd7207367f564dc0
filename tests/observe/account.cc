// The account of the run drawn in a_run.h, figure by figure.
#include "shoal/observe/account.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

constexpr double kExact = 1e-12;

TEST(Account, gives_each_moment_of_a_member_to_one_heading) {
  const Account account = account_of(two_members(), nullptr);
  ASSERT_EQ(account.ranks.size(), 2u);
  const TimeSpent& fast = account.ranks[0].spent;
  EXPECT_NEAR(fast.forward, 0.040, kExact);
  EXPECT_NEAR(fast.backward, 0.080, kExact);
  EXPECT_NEAR(fast.optimizer, 0.020, kExact);
  EXPECT_NEAR(fast.network, 0.040, kExact);
  EXPECT_NEAR(fast.waiting, 0.040, kExact);
  EXPECT_NEAR(fast.other, 0.040, kExact);
  EXPECT_NEAR(fast.whole(), 0.260, kExact);
  const TimeSpent& slow = account.ranks[1].spent;
  EXPECT_NEAR(slow.backward, 0.120, kExact);
  EXPECT_NEAR(slow.network, 0.040, kExact);
  EXPECT_EQ(slow.waiting, 0);
  EXPECT_NEAR(slow.whole(), 0.260, kExact);
  EXPECT_NEAR(account.mean.backward, 0.100, kExact);
  EXPECT_NEAR(account.mean.waiting, 0.020, kExact);
  EXPECT_EQ(account.steps, 2);
  EXPECT_NEAR(account.seconds_a_step(), 0.130, kExact);
}

TEST(Account, names_whom_a_member_waited_for) {
  const Account account = account_of(two_members(), nullptr);
  ASSERT_EQ(account.ranks[0].waited_for.size(), 1u);
  EXPECT_NEAR(account.ranks[0].waited_for.at(1), 0.040, kExact);
  EXPECT_TRUE(account.ranks[1].waited_for.empty());
}

TEST(Account, hidden_is_the_share_of_the_way_in_which_nobody_waited) {
  const Account account = account_of(two_members(), nullptr);
  EXPECT_NEAR(*account.ranks[0].hidden, 30.0 / 70, kExact);
  EXPECT_NEAR(*account.ranks[1].hidden, 50.0 / 70, kExact);
  EXPECT_NEAR(*account.hidden, 80.0 / 140, kExact);
}

TEST(Account, says_of_each_tensor_that_its_members_take_local_steps) {
  exchange::ExchangePlan plan = their_plan();
  plan.choice = "local:8";
  for (auto& unit : plan.units) unit.way = "ring";
  plan.units.back().way = "int8";
  const Account account = account_of(two_members(), &plan);
  EXPECT_EQ(account.tensors.front().way, "ring (local steps)");
  EXPECT_EQ(account.tensors[plan.units.size() - 1].way, "int8 (lossy) (local steps)");
}

TEST(Account, sets_prediction_beside_measurement_in_the_plans_order) {
  const exchange::ExchangePlan plan = their_plan();
  const Account account = account_of(two_members(), &plan);
  ASSERT_EQ(account.tensors.size(), 2u);
  const TensorAccount& fc = account.tensors[0];
  EXPECT_EQ(fc.name, "fc.weight");
  EXPECT_EQ(fc.way, "ring");
  EXPECT_EQ(fc.bytes, 4000);
  EXPECT_EQ(fc.sent, 4000);
  EXPECT_EQ(fc.exchanges, 4);
  EXPECT_NEAR(fc.seconds, 0.070, kExact);
  EXPECT_NEAR(*fc.predicted_exposed, 0.015, kExact);
  EXPECT_NEAR(fc.exposed, 0.020, kExact);
  EXPECT_NEAR(fc.waited, 0.010, kExact);  // 40 ms of one member over four exchanges
  EXPECT_NEAR(fc.hidden, 80.0 / 140, kExact);
  const TensorAccount& conv = account.tensors[1];
  EXPECT_EQ(conv.name, "conv.weight");
  EXPECT_EQ(conv.way, "direct");
  EXPECT_NEAR(conv.hidden, 1, kExact);
  EXPECT_EQ(conv.exposed, 0);
}

TEST(Account, counts_links_as_the_receiver_saw_them) {
  const Account account = account_of(two_members(), nullptr);
  ASSERT_EQ(account.links.size(), 2u);
  EXPECT_EQ(account.links[0].from, 0);
  EXPECT_EQ(account.links[0].to, 1);
  EXPECT_EQ(account.links[1].from, 1);
  EXPECT_EQ(account.links[1].to, 0);
  for (const LinkAccount& link : account.links) {
    EXPECT_EQ(link.bytes, 4000);
    EXPECT_NEAR(link.rate(), 4000 / 0.260, 1e-6);
  }
}

// An inner span takes its time from the outer one: 10 ms of waiting inside of 30 ms of forward.
TEST(Account, what_lies_inside_is_not_counted_twice) {
  RunEvents run;
  run.size = 1;
  run.ranks.resize(1);
  run.ranks[0].events = {{EventKind::forward, ms(0), ms(30), 0}, {EventKind::exposed, ms(10), ms(20), 0}};
  const TimeSpent spent = account_of(run, nullptr).ranks[0].spent;
  EXPECT_NEAR(spent.forward, 0.020, kExact);
  EXPECT_NEAR(spent.network, 0.010, kExact);
  EXPECT_NEAR(spent.whole(), 0.030, kExact);
}

// The plan is made between the two steps: what the first one waited for the network it waited without.
TEST(Account, what_first_steps_wait_is_told_apart) {
  RunEvents run = two_members();
  EXPECT_EQ(account_of(run, nullptr).ranks[0].unplanned, 0) << "no plan was made";
  auto& events = run.ranks[0].events;
  const auto next = std::find_if(events.begin(), events.end(), [](const Event& event) { return event.kind == EventKind::forward && event.step == 1; });
  const auto planning = events.insert(next, {EventKind::planning, ms(112), ms(115)});
  EXPECT_EQ(account_of(run, nullptr).ranks[0].unplanned, 0) << "fitted to other links";
  planning->value = 1;
  const RankAccount rank = account_of(run, nullptr).ranks[0];
  EXPECT_NEAR(rank.unplanned, 0.020, kExact);
  EXPECT_EQ(rank.unplanned_steps, 1);
  EXPECT_NEAR(rank.spent.network, 0.040, kExact);
}

// Between steps lie 10 ms, once 200 ms, and 10 ms of which the recorder takes 4 and the plan 3; the loss takes 5 ms of each step of 45.
TEST(Account, other_is_taken_apart_by_its_place) {
  RunEvents run;
  run.size = 1;
  run.ranks.resize(1);
  std::vector<Event>& events = run.ranks[0].events;
  events.push_back({EventKind::recording, ms(0), ms(0)});
  double at = 30;
  for (std::int64_t step = 0; step < 6; ++step) {
    events.push_back({EventKind::forward, ms(at), ms(at + 10), step, -1, step == 0 ? 10.0 : 4.0});
    events.push_back({EventKind::backward, ms(at + 15), ms(at + 35), step});
    events.push_back({EventKind::optimizer, ms(at + 35), ms(at + 45), step});
    if (step == 4) events.push_back({EventKind::recording, ms(at + 47), ms(at + 51)});
    if (step == 4) events.push_back({EventKind::planning, ms(at + 51), ms(at + 54), step, -1, 1});
    at += step == 2 ? 245 : 55;
  }
  const RankAccount rank = account_of(run, nullptr).ranks[0];
  EXPECT_NEAR(rank.start_up, 0.030, kExact);
  EXPECT_NEAR(rank.pauses, 0.200, kExact);
  EXPECT_EQ(rank.paused, 1);
  EXPECT_NEAR(rank.loading, 0.033, kExact);
  EXPECT_NEAR(rank.recording, 0.004, kExact);
  EXPECT_NEAR(rank.planning, 0.003, kExact);
  EXPECT_EQ(rank.unplanned_steps, 5) << "steps 0 to 4";
  EXPECT_NEAR(rank.spent.other, 0.030 + 0.240, kExact);
  EXPECT_NEAR(rank.samples, 5, kExact);
}

// 19 windows of 100 ms with 100 KB each, and a burst of 150 KB in one: less than a tenth of all bytes.
TEST(Account, the_fastest_rate_of_a_link_is_no_mean_and_no_burst) {
  RunEvents run = two_members();
  for (RankEvents& rank : run.ranks) rank.events.clear();
  for (int i = 0; i < 19; ++i) run.ranks[1].events.push_back({EventKind::received, ms(1000.0 * i), ms(1000.0 * i), -1, 0, 100e3});
  run.ranks[1].events.insert(run.ranks[1].events.begin(), {EventKind::forward, ms(0), ms(1), 0});
  run.ranks[1].events.push_back({EventKind::received, ms(30000), ms(30000), -1, 0, 150e3});
  const Account account = account_of(run, nullptr);
  EXPECT_NEAR(account.ranks[1].fastest_in, 1e6, 1);
  EXPECT_NEAR(account.ranks[0].fastest_out, 1e6, 1);
  EXPECT_EQ(account.ranks[0].fastest_in, 0);
  ASSERT_EQ(account.links.size(), 1u);
  EXPECT_NEAR(account.links[0].fastest, 1e6, 1);

  // A broadcast before the first step and the probe while the plan is made are not the link's.
  std::vector<Event>& events = run.ranks[1].events;
  events.insert(events.begin(), {EventKind::received, ms(-500), ms(-500), -1, 0, 10e6});
  events.push_back({EventKind::planning, ms(31000), ms(32000)});
  events.push_back({EventKind::received, ms(31500), ms(31500), -1, 0, 10e6});
  EXPECT_NEAR(account_of(run, nullptr).links[0].fastest, 1e6, 1);
}

TEST(Account, a_member_without_events_has_spent_nothing) {
  RunEvents run;
  run.size = 1;
  run.ranks.resize(1);
  const Account account = account_of(run, nullptr);
  EXPECT_EQ(account.ranks[0].spent.whole(), 0);
  EXPECT_FALSE(account.hidden.has_value());
  EXPECT_EQ(account.seconds_a_step(), 0);
}

}  // namespace
}  // namespace shoal::observe
