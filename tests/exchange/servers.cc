// Goal: with servers the mean is that of the workers alone, added in rank order, whoever owns a part; all members send as much as the closed form
// says, and less than without. Method: several members in one process on a scripted network; oracle: one loop in rank order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "shoal/core/event.h"
#include "shoal/exchange/plan_price.h"
#include "shoal/exchange/planner.h"
#include "shoal/exchange/way.h"
#include "tests/exchange/members.h"
#include "tests/exchange/normal_numbers.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kServed = 30'011;

ExchangePlan served(std::uint32_t workers, std::uint32_t servers) {
  ExchangePlan plan;
  plan.ranks = workers + servers;
  plan.tensors = {{.name = "weight", .count = kServed}, {.name = "bias", .count = 7, .first_use = 1}};
  const auto way = "servers:" + std::to_string(servers);
  plan.units = {{{1, 0}, way, 16384, 0, 0, 0}};
  return plan;
}

TEST(Servers, add_the_workers_gradients_in_rank_order) {
  for (const auto& [workers, servers] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 1u}, {3u, 2u}, {4u, 1u}, {2u, 3u}, {4u, 4u}}) {
    SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(servers) + " servers");
    Members members(served(workers, servers), workers);
    for (std::uint64_t step = 0; step < 2; ++step) {
      std::vector<std::vector<float>> weight, bias;
      for (std::uint32_t r = 0; r < members.size(); ++r) {
        weight.push_back(normal_numbers(kServed, 100 * step + r));
        bias.push_back(normal_numbers(7, 1000 + r));
        members[r].begin(r < workers ? 8 : 0);
        for (std::uint32_t t : {0u, 1u}) r < workers ? members[r].produced(t, t == 0 ? weight[r].data() : bias[r].data()) : members[r].absent(t);
      }
      for (std::uint32_t r = 0; r < workers; ++r) {
        const auto* got = static_cast<const float*>(members[r].result(0));
        for (std::uint64_t i = 0; i < kServed; ++i) {
          float sum = weight[0][i];
          for (std::uint32_t w = 1; w < workers; ++w) sum += weight[w][i];
          ASSERT_EQ(got[i], sum / static_cast<float>(workers));
        }
      }
      for (std::uint32_t r = 0; r < members.size(); ++r) members[r].commit();
    }
  }
}

TEST(Servers, keep_all_links_equally_busy) {
  for (const auto& [workers, servers] : {std::pair{3u, 1u}, {4u, 1u}, {4u, 2u}, {4u, 4u}}) {
    const double n = workers, k = servers;
    const double expected = 2 * n * (n - 1) / (n * n + k * n - 2 * k) * (kServed + 7) * 4;
    Members members(served(workers, servers));
    const std::vector<float> gradient(kServed);
    Events::local().drain();
    Events::local().enable(true);
    for (std::uint32_t r = 0; r < members.size(); ++r) {
      members[r].begin(r < workers);
      for (std::uint32_t t : {0u, 1u}) r < workers ? members[r].produced(t, gradient.data()) : members[r].absent(t);
    }
    for (std::uint32_t r = 0; r < members.size(); ++r) members[r].commit();
    Events::local().enable(false);
    std::vector<double> sent;
    for (const auto& event : Events::local().drain()) {
      if (event.kind == EventKind::exchange) sent.push_back(event.value);
    }
    EXPECT_THAT(sent, testing::SizeIs(workers + servers));
    EXPECT_THAT(sent, testing::Each(testing::DoubleNear(expected, 0.001 * expected))) << workers << " and " << servers;
    const auto plan = served(workers, servers);
    const Load load{.first = plan.tensors[0], .count = kServed + 7, .ranks = plan.ranks, .link = {}};
    EXPECT_NEAR(way_named(plan.units[0].way)->cost(load).sent, expected, 1);
    EXPECT_LT(expected, 2 * (n - 1) / n * (kServed + 7) * 4);
  }
}

// By an all-reduce of the workers; its bits are those of a run without servers.
TEST(Servers, idle_where_a_way_has_no_use_for_them) {
  for (const auto& [workers, servers] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 2u}, {4u, 1u}}) {
    SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(servers) + " servers");
    for (const std::string way : {"ring", "direct", "recursive_doubling"}) {
      ExchangePlan beside = served(workers, servers), alone = served(workers, 0);
      beside.servers = servers;
      beside.units[0].way = alone.units[0].way = way;
      EXPECT_EQ(cost_of(beside, beside.units[0]).seconds(), cost_of(alone, alone.units[0]).seconds());
      Members members(beside, workers), others(alone, workers);
      std::vector<std::vector<float>> weight, bias;
      Events::local().drain();
      Events::local().enable(true);
      for (std::uint32_t r = 0; r < workers + servers; ++r) {
        weight.push_back(normal_numbers(kServed, r));
        bias.push_back(normal_numbers(7, 1000 + r));
        for (Members* of : {&members, &others}) {
          if (r >= of->size()) continue;
          (*of)[r].begin(r < workers ? 8 : 0);
          for (std::uint32_t t : {0u, 1u}) r < workers ? (*of)[r].produced(t, t == 0 ? weight[r].data() : bias[r].data()) : (*of)[r].absent(t);
        }
      }
      for (std::uint32_t r = 0; r < workers; ++r) {
        const auto *got = static_cast<const float*>(members[r].result(0)), *expected = static_cast<const float*>(others[r].result(0));
        ASSERT_TRUE(std::equal(got, got + kServed, expected)) << way;
      }
      for (std::uint32_t r = 0; r < members.size(); ++r) members[r].commit();
      for (std::uint32_t r = 0; r < others.size(); ++r) others[r].commit();
      Events::local().enable(false);
      std::uint32_t idle = 0;
      for (const auto& event : Events::local().drain()) idle += event.kind == EventKind::exchange && event.value == 0;
      EXPECT_EQ(idle, servers + (workers == 1 ? 2 : 0)) << way;  // one worker has nobody to send to, in either run
    }
  }
}

TEST(Servers, are_planned_for_where_they_save_time) {
  const collective::LinkModel link{100e-6, 25e6, 8e9, 25e6};  // a member receives from all at once as fast as from one
  const std::vector<TensorSpec> tensors{{.name = "large", .count = 1 << 22}, {.name = "small", .count = 8, .first_use = 1}};
  const auto plan = make_plan(tensors, 5, link, {}, {}, 1);
  const auto alone = make_plan(tensors, 4, link, {}, {});
  ASSERT_EQ(plan.units.size(), 2u);
  EXPECT_EQ(plan.servers, 1u);
  EXPECT_EQ(plan.units.back().way, "servers:1");
  EXPECT_LT(plan.units.back().predicted_seconds, 0.95 * alone.units.back().predicted_seconds);
  EXPECT_LE(plan.units.front().predicted_seconds, alone.units.front().predicted_seconds);
  EXPECT_EQ(plan_from_json(to_json(plan), "test").servers, 1u);
  EXPECT_EQ(plan_from_json(to_json(plan), "test").hash(), plan.hash());
  EXPECT_THROW(check_fits(plan, tensors, 5), Error);
  check_fits(plan, tensors, 5, 1);
  EXPECT_THROW(make_plan(tensors, 5, link, {}, parse_choice("servers:2", "plan"), 1), Error);
}

TEST(Servers, with_gradients_of_their_own_are_refused) {
  Members members(served(2, 1));
  const std::vector<float> gradient(kServed);
  members[2].begin(1);
  members[2].absent(1);
  try {
    members[2].produced(0, gradient.data());
    FAIL() << "its gradient was left out";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "plan: rank 2 is a server of this plan and has a gradient (let the members before it train, and this one wait in "
                           "model.join())");
  }
}

TEST(Servers, leave_somebody_to_train) {
  const auto plan = served(1, 2);
  EXPECT_THROW(way_named("servers:3")->cost({.first = plan.tensors[0], .count = kServed, .ranks = 3, .link = {}}), Error);
  EXPECT_THROW(way_named("servers:1.5"), Error);
  EXPECT_THROW(way_named("servers:0"), Error);
}

}  // namespace
}  // namespace shoal::exchange
