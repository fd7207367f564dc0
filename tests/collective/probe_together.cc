// Flows at the same time on a scripted network, whose members' links have a known rate: shares are what a switch would give.
#include "shoal/collective/probe_together.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

constexpr double kTogetherRate = 25e6;
constexpr Nanoseconds kTogetherDelay = std::chrono::microseconds(100);

PairMatrix figures(std::uint32_t ranks) {
  return {ranks, std::vector<PairFigures>(std::size_t{ranks} * ranks, {Seconds(kTogetherDelay).count(), kTogetherRate, kTogetherRate})};
}

struct TogetherAnswer {
  int times = 0;
  net::Failure why;
  std::vector<double> rates;
};

std::vector<TogetherAnswer> measure(std::uint32_t ranks, const std::vector<topo::Flow>& flows, std::optional<net::Rank> killed = {}) {
  std::vector<TogetherAnswer> answers(ranks);
  ScriptedGroup group(ranks, {.delay_min = kTogetherDelay, .delay_max = kTogetherDelay, .rate = kTogetherRate, .frame = 8192});
  if (killed) group.job.at(std::chrono::milliseconds(100), [&] { group.job.kill(*killed); });
  for (net::Rank rank = 0; rank < ranks; ++rank) {
    probe_together(*group.runners[rank], flows, figures(ranks), 1000, Instant{} + std::chrono::seconds(30),
                   [&answer = answers[rank]](const net::Failure& why, const std::vector<double>& rates) {
                     answer = {answer.times + 1, why, rates};
                   });
  }
  group.job.run();
  return answers;
}

void expect_rates(std::uint32_t ranks, const std::vector<topo::Flow>& flows, double each) {
  for (const TogetherAnswer& answer : measure(ranks, flows)) {
    ASSERT_EQ(answer.times, 1);
    ASSERT_FALSE(answer.why) << answer.why->what();
    ASSERT_EQ(answer.rates.size(), flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i)
      EXPECT_NEAR(answer.rates[i], each, 0.1 * each) << flows[i].from << " to " << flows[i].to;
  }
}

TEST(ProbeTogether, flows_share_the_links_that_they_meet_in) {
  expect_rates(2, {{0, 1}}, kTogetherRate);
  expect_rates(4, {{1, 0}, {2, 0}, {3, 0}}, kTogetherRate / 3);                  // all to one
  expect_rates(4, {{0, 1}, {0, 2}, {0, 3}}, kTogetherRate / 3);                  // one to all
  expect_rates(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}, kTogetherRate);              // a matching
  expect_rates(3, {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}, kTogetherRate / 2);
}

TEST(ProbeTogether, no_flow_is_a_barrier) {
  for (const TogetherAnswer& answer : measure(3, {})) EXPECT_EQ(answer.times, 1);
}

TEST(ProbeTogether, all_members_know_the_same_rates) {
  const auto answers = measure(4, {{0, 1}, {2, 1}, {3, 0}});
  for (const TogetherAnswer& answer : answers) EXPECT_EQ(answer.rates, answers[0].rates);
}

TEST(ProbeTogether, a_dead_member_ends_it_for_all) {
  const auto answers = measure(3, {{0, 1}, {1, 2}, {2, 0}}, 2);
  for (const net::Rank rank : {0u, 1u}) {
    ASSERT_EQ(answers[rank].times, 1);
    ASSERT_TRUE(answers[rank].why);
    EXPECT_EQ(answers[rank].why->code(), Code::peer_lost);
  }
}

}  // namespace
}  // namespace shoal::collective
