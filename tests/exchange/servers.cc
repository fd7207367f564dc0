// Goal: with servers the mean is that of the workers alone, added in rank order, whoever owns a part; all members send as much as the closed form
// says, and less than without. Method: several members in one process on a scripted network; oracle: one loop in rank order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "shoal/core/event.h"
#include "shoal/exchange/way.h"
#include "tests/exchange/members.h"

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

std::vector<float> served_gradient(std::uint64_t seed, std::uint64_t count) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(count);
  for (auto& v : gradient) v = normal(random);
  return gradient;
}

TEST(Servers, add_the_workers_gradients_in_rank_order) {
  for (const auto& [workers, servers] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 1u}, {3u, 2u}, {4u, 1u}, {2u, 3u}, {4u, 4u}}) {
    SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(servers) + " servers");
    Members members(served(workers, servers), workers);
    for (std::uint64_t step = 0; step < 2; ++step) {
      std::vector<std::vector<float>> weight, bias;
      for (std::uint32_t r = 0; r < members.size(); ++r) {
        weight.push_back(served_gradient(100 * step + r, kServed));
        bias.push_back(served_gradient(1000 + r, 7));
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
