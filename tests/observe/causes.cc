// Accounts of runs whose cause is known, written by hand: the cause that dominates is named first, with its number and a remedy, and
// nothing of the time is lost or counted twice.
#include "shoal/observe/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "shoal/collective/select.h"

namespace shoal::observe {
namespace {

using testing::HasSubstr;

constexpr double kNearly = 1e-9;

// Four members and ten steps; a step computes 30 + 60 ms of 100 images and nothing else. Links are alike.
Account good_run() {
  Account account;
  account.steps = 10;
  for (int rank = 0; rank < 4; ++rank) {
    RankAccount member;
    member.rank = rank;
    member.host = std::string("host") + static_cast<char>('a' + rank);
    member.steps = 10;
    member.spent.forward = 0.3;
    member.spent.backward = 0.6;
    member.samples = 100;
    member.fastest_in = member.fastest_out = 25e6;
    account.ranks.push_back(member);
    for (int to = 0; to < 4; ++to) {
      if (to != rank) account.links.push_back({rank, to, 1e9, 1, 20e6, 1e9});
    }
  }
  return account;
}

// `change` on every member, and the mean again.
template <class Change>
Account with(Account account, Change change) {
  account.mean = {};
  for (RankAccount& rank : account.ranks) {
    change(rank);
    for (auto part : {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::optimizer, &TimeSpent::network, &TimeSpent::waiting,
                      &TimeSpent::other}) {
      account.mean.*part += rank.spent.*part / static_cast<double>(account.ranks.size());
    }
  }
  return account;
}

// One tensor of 20 MB by the ring at 25 MB/s, which backward does not hide: 1.5 x 20 / 25 = 1.2 s. Its six steps cost `alpha` each.
exchange::ExchangePlan plan_of(double alpha) {
  exchange::ExchangePlan plan;
  plan.ranks = 4;
  plan.link = {alpha, 25e6, 1e15, 0, 0};
  plan.tensors = {{"fc.weight", DType::f32, 5'000'000, 0, 0.0}};
  plan.units = {{{0}, "ring", 65536, 0, 0, 0}};
  return exchange::priced_on(plan, plan.link);
}

const Cause& first_of(const Explanation& why) { return why.causes.at(0); }

double sum_of(const Explanation& why) {
  double sum = why.computing;
  for (const Cause& cause : why.causes) sum += cause.seconds;
  return sum;
}

TEST(Causes, a_run_that_only_computes_has_none) {
  const Explanation why = explain(with(good_run(), [](RankAccount&) {}), nullptr);
  EXPECT_TRUE(why.causes.empty());
  EXPECT_NEAR(why.share(why.computing), 1, kNearly);
  EXPECT_EQ(headline(why), "100.0 % of the time is computing, nothing else took any");
}

TEST(Causes, a_run_that_loses_little_is_told_so_with_its_numbers) {
  const Explanation why = explain(with(good_run(), [](RankAccount& rank) { rank.spent.optimizer = 0.01; }), nullptr);
  EXPECT_EQ(headline(why), "nothing costs much: 98.9 % of the time is computing, the largest rest 1.1 % (the optimizer)");
}

TEST(Causes, a_full_link_is_named_with_what_fewer_bytes_would_bring) {
  const auto plan = plan_of(0);
  ASSERT_NEAR(plan.predicted_exposed(), 1.2, 1e-3);  // the ring's additions cost nearly nothing
  const Account account = with(good_run(), [](RankAccount& rank) {
    rank.spent.network = 6;  // less than the plan counted on: all of it is bytes
    rank.received = 10 * 30e6;
    rank.on_the_way = 12.5;
  });
  const Explanation why = explain(account, &plan);
  ASSERT_EQ(why.causes.size(), 1u);
  EXPECT_EQ(first_of(why).kind, CauseKind::link);
  EXPECT_NEAR(first_of(why).seconds, 6, kNearly);
  EXPECT_THAT(first_of(why).says, HasSubstr("links carried 24.0 of 25.0 MB/s"));
  EXPECT_THAT(first_of(why).says, HasSubstr("receives 30 MB a step, at that rate 1.2 s at least"));
  // 600 of 690 ms; twice the work: 600 of 780; half the bytes: 300 of 390.
  EXPECT_EQ(first_of(why).remedy,
            "only fewer bytes help: a batch of 200 instead of 100 a member or gradient accumulation over two (model.no_sync()): exposed "
            "87 % -> 77 % of a step; --plan bf16 (lossy), half the bytes: 87 % -> 77 %");
}

TEST(Causes, one_member_with_a_slow_link_is_named_and_what_the_others_rate_would_leave) {
  const auto plan = plan_of(0);
  Account account = with(good_run(), [](RankAccount& rank) { rank.spent.network = 12; });
  account.ranks[2].fastest_out = 5e6;
  const Explanation why = explain(account, &plan);
  EXPECT_EQ(first_of(why).kind, CauseKind::slow_link);
  EXPECT_EQ(first_of(why).title, "a slow link: rank 2 (hostc)");
  EXPECT_NEAR(first_of(why).seconds, 12 * 0.8, 0.01);
  EXPECT_THAT(first_of(why).says, HasSubstr("sends 5.0 MB/s at its fastest, the others 25.0 MB/s"));
  EXPECT_EQ(why.causes.at(1).kind, CauseKind::link);
}

TEST(Causes, one_slow_link_between_two_members_is_named) {
  const auto plan = plan_of(0);
  Account account = with(good_run(), [](RankAccount& rank) { rank.spent.network = 12; });
  account.links[0].fastest = 4e6;
  EXPECT_EQ(first_of(explain(account, &plan)).title, "a slow link: the link 0 -> 1");
  account.links[0].in_training = 1e6;  // it carries next to nothing: its rate says nothing
  EXPECT_EQ(first_of(explain(account, &plan)).kind, CauseKind::link);
}

TEST(Causes, links_with_little_to_carry_are_not_compared) {
  const auto plan = plan_of(0);
  Account account = with(good_run(), [](RankAccount& rank) {
    rank.spent.network = 12;
    rank.fastest_in = rank.fastest_out = 3e6;
  });
  for (LinkAccount& link : account.links) link.fastest = 2e6;
  account.ranks[2].fastest_out = account.links[0].fastest = 0.5e6;
  EXPECT_EQ(first_of(explain(account, &plan)).kind, CauseKind::link);
}

TEST(Causes, latency_is_what_the_plan_costs_more_with_it) {
  exchange::ExchangePlan plan = plan_of(0.01);
  plan.tensors[0].count = 1000;  // 4 KB: next to no bytes, six steps of 10 ms
  plan = exchange::priced_on(plan, plan.link);
  const Account account = with(good_run(), [](RankAccount& rank) { rank.spent.network = 0.5; });
  const Explanation why = explain(account, &plan);
  EXPECT_EQ(first_of(why).kind, CauseKind::latency);
  EXPECT_NEAR(first_of(why).seconds, 0.5, 0.01);
  EXPECT_THAT(first_of(why).says, HasSubstr("1 operations a step, each with messages that take 10 ms"));
}

TEST(Causes, a_network_below_the_plans_figures_is_told_from_a_full_one) {
  const auto plan = plan_of(0);
  const Account account = with(good_run(), [](RankAccount& rank) { rank.spent.network = 36; });
  const Explanation why = explain(account, &plan);
  EXPECT_EQ(first_of(why).kind, CauseKind::slower);
  EXPECT_NEAR(first_of(why).seconds, 24, 0.01);
  EXPECT_THAT(first_of(why).says, HasSubstr("3.6 s of each step wait for the network where the plan counted on 1.2 s"));
}

TEST(Causes, without_a_plan_communication_stays_whole) {
  const Account account = with(good_run(), [](RankAccount& rank) { rank.spent.network = 36; });
  EXPECT_EQ(first_of(explain(account, nullptr)).kind, CauseKind::communication);
}

TEST(Causes, a_member_that_computes_longer_is_named_with_how_much_and_an_equal_share_of_work) {
  const Account account = with(good_run(), [](RankAccount& rank) {
    if (rank.rank == 2) {
      rank.spent.forward *= 2;
      rank.spent.backward *= 2;
    } else {
      rank.spent.waiting = 0.9;
      rank.waited_for[2] = 0.9;
    }
  });
  const Explanation why = explain(account, nullptr);
  EXPECT_EQ(first_of(why).kind, CauseKind::slow_member);
  EXPECT_EQ(first_of(why).title, "waiting for rank 2 (hostc)");
  EXPECT_EQ(first_of(why).says, "it computes (forward and backward) 180 ms a step, the median of the others 90 ms: 2.0x");
  EXPECT_THAT(first_of(why).remedy, HasSubstr("give it 50 samples a batch instead of 100"));
}

// Its first gradient is in time, so nobody is seen waiting; but the others wait for bytes while it still computes.
TEST(Causes, a_member_that_is_late_inside_of_backward_is_found_behind_the_network) {
  const auto plan = plan_of(0);
  const Account account = with(good_run(), [](RankAccount& rank) {
    rank.spent.network = 12;
    if (rank.rank == 1)
      rank.spent.backward += 40;
    else
      rank.spent.network += 40;
  });
  const Explanation why = explain(account, &plan);
  EXPECT_EQ(first_of(why).kind, CauseKind::slow_member);
  EXPECT_EQ(first_of(why).title, "waiting for rank 1 (hostb)");
  EXPECT_NEAR(first_of(why).seconds, 30, 0.01);
  EXPECT_NEAR(sum_of(why), why.seconds, kNearly);
}

TEST(Causes, a_member_whose_data_comes_late_is_told_from_one_that_computes_longer) {
  const Account account = with(good_run(), [](RankAccount& rank) {
    if (rank.rank == 0)
      rank.spent.other = rank.loading = 2;
    else
      rank.spent.waiting = rank.waited_for[0] = 2;
  });
  EXPECT_THAT(first_of(explain(account, nullptr)).says, HasSubstr("(data loading, the script) 200 ms a step, the median of the others 0"));
}

TEST(Causes, members_that_are_late_by_turns_are_not_blamed_one_by_one) {
  const Account account = with(good_run(), [](RankAccount& rank) { rank.spent.waiting = rank.waited_for[(rank.rank + 1) % 4] = 1; });
  EXPECT_EQ(first_of(explain(account, nullptr)).kind, CauseKind::turns);
  EXPECT_THAT(first_of(explain(account, nullptr)).says, HasSubstr("rank 3 25 %"));
}

TEST(Causes, what_lies_between_steps_is_told_apart) {
  const auto first_with = [](double RankAccount::* part) {
    const Account account = with(good_run(), [&](RankAccount& rank) {
      rank.spent.other = 4;
      rank.paused = 2;
      rank.*part = 3;
    });
    return first_of(explain(account, nullptr));
  };
  EXPECT_EQ(first_with(&RankAccount::loading).kind, CauseKind::loading);
  EXPECT_THAT(first_with(&RankAccount::loading).remedy, HasSubstr("490 ms -> 190 ms a step at best"));
  EXPECT_EQ(first_with(&RankAccount::pauses).kind, CauseKind::pauses);
  EXPECT_THAT(first_with(&RankAccount::pauses).says, HasSubstr("2 longer than a step, of 1.5 s each"));
  EXPECT_EQ(first_with(&RankAccount::recording).kind, CauseKind::recording);
  EXPECT_EQ(first_with(&RankAccount::start_up).kind, CauseKind::rest);  // of the 4 s nothing is known
}

// Seven of ten steps wait half as long as the plan counted on, the three before it six times as long: what is left is a full link.
TEST(Causes, first_steps_that_have_no_plan_are_not_held_against_it) {
  const auto plan = plan_of(0);
  const double waits = plan.predicted_exposed() / 2;
  const Explanation why = explain(with(good_run(), [&](RankAccount& rank) {
    rank.unplanned = 3 * 6 * waits;
    rank.unplanned_steps = 3;
    rank.spent.network = rank.unplanned + 7 * waits;
  }), &plan);
  ASSERT_EQ(why.causes.size(), 2u);
  EXPECT_EQ(first_of(why).kind, CauseKind::first_steps);
  EXPECT_NEAR(first_of(why).seconds, 15 * waits, kNearly);
  EXPECT_THAT(first_of(why).says, HasSubstr("the first 3 steps"));
  EXPECT_EQ(why.causes[1].kind, CauseKind::link);
  EXPECT_NEAR(why.causes[1].seconds, 10 * waits, kNearly);
  EXPECT_THAT(first_of(why).remedy, HasSubstr("with ten times the steps it is 12 %"));

  const Explanation as_quick = explain(with(good_run(), [&](RankAccount& rank) {
    rank.unplanned = 3 * waits;
    rank.unplanned_steps = 3;
    rank.spent.network = 10 * waits;
  }), &plan);
  EXPECT_EQ(first_of(as_quick).kind, CauseKind::link) << "they waited no longer than others";
}

TEST(Causes, start_up_counts_once) {
  const Explanation why = explain(with(good_run(), [](RankAccount& rank) {
    rank.start_up = 8;
    rank.spent.other = rank.planning = 1;
  }), nullptr);
  EXPECT_EQ(first_of(why).kind, CauseKind::start_up);
  EXPECT_NEAR(why.seconds, 9.9, kNearly);
  EXPECT_THAT(first_of(why).remedy, HasSubstr("with ten times the steps it is 50 %"));
}

// Whatever the account says: computing and causes are the whole, the largest first.
TEST(Causes, add_up_to_the_whole) {
  const auto plan = plan_of(0.001);
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&] { return std::exponential_distribution<double>(1)(random); };
    Account account = with(good_run(), [&](RankAccount& rank) {
      rank.spent = {any(), any(), any(), 20 * any(), any(), any()};
      rank.waited_for[(rank.rank + 1) % 4] = rank.spent.waiting;
      rank.loading = rank.spent.other / 2;
      rank.pauses = rank.spent.other / 4;
      rank.planning = rank.spent.other / 8;
      rank.start_up = any();
      rank.fastest_in = any();
      rank.unplanned = rank.spent.network * std::min(1.0, any());
      rank.unplanned_steps = static_cast<std::int64_t>(4 * any());
    });
    for (const bool planned : {false, true}) {
      const Explanation why = explain(account, planned ? &plan : nullptr);
      ASSERT_NEAR(sum_of(why), why.seconds, kNearly) << "seed " << seed;
      ASSERT_TRUE(std::is_sorted(why.causes.begin(), why.causes.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
      for (const Cause& cause : why.causes) ASSERT_GT(cause.seconds, 0) << "seed " << seed << ", " << cause.title;
    }
  }
}

TEST(Causes, as_text_and_for_machines) {
  Account account = with(good_run(), [](RankAccount& rank) { rank.spent.optimizer = 0.09, rank.start_up = 0.01; });
  account.remarks = {"rank 3 left no events in this folder"};
  account.notes = {"ranks 0, 1: rank 2 (hostc) has not been heard for 2 s"};
  const Explanation why = explain(account, nullptr);
  EXPECT_EQ(to_text(why, "runs/one"),
            "runs/one: 4 members, 10 steps in 1 s\n\n"
            "  1.   9.0 %  the optimizer\n"
            "              optimizer.step() computes 9 ms a step\n"
            "              remedy: fused=True, where the optimizer has it, takes one pass over the parameters\n"
            "  2.   1.0 %  start-up\n"
            "              10 ms from shoal.init() to the first forward pass, 0 s to measure links and make the plan\n"
            "      90.0 %  computing: forward and backward\n"
            "to know: rank 3 left no events in this folder\n"
            "to know: ranks 0, 1: rank 2 (hostc) has not been heard for 2 s\n");
  const auto json = nlohmann::json::parse(to_json(why, "runs/one"));
  EXPECT_EQ(json["causes"][0]["cause"], "optimizer");
  EXPECT_NEAR(json["causes"][0]["share"], 0.09, kNearly);
  EXPECT_NEAR(json["computing"], 0.9, kNearly);
  EXPECT_EQ(json["remarks"].size(), 2u);
}

TEST(Causes, a_run_without_steps_says_what_would_be_recorded) {
  EXPECT_EQ(headline(explain(Account{}, nullptr)), "no step was recorded: steps are those of a model in shoal.data_parallel()");
}

}  // namespace
}  // namespace shoal::observe
