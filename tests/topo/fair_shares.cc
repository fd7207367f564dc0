// Rates of flows that share links: by hand, and on random networks against the definition.
#include "shoal/topo/fair_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shoal::topo {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

TEST(FairShares, one_link_is_shared_evenly) {
  FairShares shares;
  const std::uint32_t link = shares.add_link(12);
  for (int i = 0; i < 3; ++i) shares.add_flow(std::span(&link, 1));
  shares.solve();
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(shares.rate(i), 4);
}

// Bertsekas and Gallager's picture: who is held up elsewhere leaves the rest to the others.
TEST(FairShares, what_one_cannot_use_the_others_have) {
  FairShares shares;
  const std::uint32_t narrow = shares.add_link(1), wide = shares.add_link(10);
  const std::uint32_t both[] = {narrow, wide};
  shares.add_flow(both);
  shares.add_flow(std::span(&narrow, 1));
  shares.add_flow(std::span(&wide, 1));
  shares.add_flow(std::span(&wide, 1), 0, 2);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 0.5);
  EXPECT_EQ(shares.rate(1), 0.5);
  EXPECT_EQ(shares.rate(2), 7.5);
  EXPECT_EQ(shares.rate(3), 2);
}

TEST(FairShares, a_later_level_has_what_is_left) {
  FairShares shares;
  const std::uint32_t link = shares.add_link(10), other = shares.add_link(4);
  const std::uint32_t both[] = {link, other};
  shares.add_flow(std::span(&link, 1), 1);
  shares.add_flow(both, 0);
  shares.add_flow(std::span(&link, 1), 2);
  shares.add_flow({}, 0, 3);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 6);
  EXPECT_EQ(shares.rate(1), 4);
  EXPECT_EQ(shares.rate(2), 0);
  EXPECT_EQ(shares.rate(3), 3);
}

struct Problem {
  std::vector<double> capacities;
  struct Flow {
    std::vector<std::uint32_t> links;
    std::uint32_t level;
    double cap;
  };
  std::vector<Flow> flows;
};

Problem random_problem(std::mt19937& random) {
  Problem problem;
  for (std::size_t i = 1 + random() % 8; i > 0; --i) problem.capacities.push_back(static_cast<double>(1 + random() % 50));
  for (std::size_t i = 1 + random() % 20; i > 0; --i) {
    Problem::Flow flow{{}, random() % 4 == 0 ? static_cast<std::uint32_t>(random() % 3) : 0, random() % 3 == 0 ? static_cast<double>(1 + random() % 10) : kEndless};
    for (std::uint32_t link = 0; link < problem.capacities.size(); ++link) {
      if (random() % 3 == 0) flow.links.insert(flow.links.end(), 1 + random() % 4 / 3, link);  // now and then it is passed twice
    }
    if (flow.links.empty()) flow.links.push_back(static_cast<std::uint32_t>(random() % problem.capacities.size()));
    std::ranges::shuffle(flow.links, random);
    problem.flows.push_back(flow);
  }
  return problem;
}

// Progressive filling as it is told: raise all rates by the least that fills a link or reaches a cap, again and again.
std::vector<double> filled(const Problem& problem) {
  std::vector<double> left = problem.capacities, rates(problem.flows.size(), 0);
  for (std::uint32_t level = 0; level < 3; ++level) {
    std::vector<std::size_t> rising;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (problem.flows[i].level == level) rising.push_back(i);
    }
    while (!rising.empty()) {
      double rise = kEndless;
      for (std::uint32_t link = 0; link < left.size(); ++link) {
        std::ptrdiff_t count = 0;
        for (const std::size_t flow : rising) count += std::ranges::count(problem.flows[flow].links, link);
        if (count > 0) rise = std::min(rise, left[link] / static_cast<double>(count));
      }
      for (const std::size_t flow : rising) rise = std::min(rise, problem.flows[flow].cap - rates[flow]);
      for (const std::size_t flow : rising) {
        rates[flow] += rise;
        for (const std::uint32_t link : problem.flows[flow].links) left[link] -= rise;
      }
      std::erase_if(rising, [&](std::size_t flow) {
        return rates[flow] > problem.flows[flow].cap - 1e-9 ||
               std::ranges::any_of(problem.flows[flow].links, [&](std::uint32_t link) { return left[link] < 1e-9; });
      });
    }
  }
  return rates;
}

TEST(FairShares, are_those_of_the_definition_on_random_networks) {
  std::mt19937 random(8);
  FairShares shares;
  for (int round = 0; round < 2000; ++round) {
    const Problem problem = random_problem(random);
    shares.clear();
    for (const double capacity : problem.capacities) shares.add_link(capacity);
    for (const auto& flow : problem.flows) shares.add_flow(flow.links, flow.level, flow.cap);
    shares.solve();
    const std::vector<double> expected = filled(problem);
    for (std::uint32_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(shares.rate(i), expected[i], 1e-6) << "round " << round << ", flow " << i;
  }
}

}  // namespace
}  // namespace shoal::topo
