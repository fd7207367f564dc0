// Blink's two steps against the exact search: what its proof promises, on odd networks and on all allocations of a DGX-1.
#include "shoal/packing/blink.h"

#include <gtest/gtest.h>

#include <cmath>

#include "shoal/core/error.h"
#include "tests/packing/nvlink_allocations.h"
#include "tests/topo/random_networks.h"
#include "tests/packing/sound.h"

namespace shoal::packing {
namespace {

constexpr Demand kOneOrigin[] = {Demand::all_reduce, Demand::broadcast, Demand::reduce};

topo::Topology dgx1v() {
  for (const auto& entry : nvlink_classes(SHOAL_PACKING_DATA)) {
    if (entry["machine"] == "dgx1v_v100" && entry["gpus"].size() == 8) return allocation(entry);
  }
  return {};
}

TEST(Blink, weights_come_as_near_to_the_best_as_is_proved) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 6, .most_switches = 2, .symmetric = seed % 2 == 0});
    const Network network(topology);
    if (network.hosts() < 2) continue;
    const Demand demand = kOneOrigin[seed % 3];
    const Node root = static_cast<Node>(seed % network.hosts());
    const double best = pack_exactly(network, demand, root).rate;
    for (const double eps : {0.2, 0.05}) {
      const std::string what = topology.name + ", " + name(demand) + ", eps " + std::to_string(eps);
      const Packing candidates = pack_by_weights(network, demand, root, eps);
      expect_sound(network, candidates, what);
      EXPECT_GE(candidates.rate, (1 - 2 * eps) * best) << what;
      const Packing few = pack_blink(network, demand, root, {.eps = eps});
      expect_sound(network, few, what);
      EXPECT_GE(few.rate, 0.95 * candidates.rate * (1 - 1e-9)) << what;
      EXPECT_LE(few.trees.size(), candidates.trees.size()) << what;
    }
  }
}

TEST(Blink, every_allocation_of_a_dgx1_is_served) {
  for (const auto& entry : nvlink_classes(SHOAL_PACKING_DATA)) {
    const Network network(allocation(entry));
    const std::string what = entry["machine"].get<std::string>() + " " + entry["gpus"].dump();
    for (const Demand demand : kOneOrigin) {
      const Packing few = pack_blink(network, demand, 0);
      expect_sound(network, few, what);
      EXPECT_GE(few.rate, 0.9 * pack_exactly(network, demand, 0).rate) << what << " " << name(demand);
      EXPECT_LE(few.trees.size(), 24U) << what << " " << name(demand);
    }
  }
}

// The paper's own example: 181 trees of weights 0.002 to 0.899 become 6 trees of weight 1.
TEST(Blink, a_broadcast_on_eight_gpus_is_six_trees_of_one_link_each) {
  const Network network(dgx1v());
  ASSERT_EQ(network.hosts(), 8U);
  const Packing candidates = pack_by_weights(network, Demand::broadcast);
  EXPECT_GT(candidates.trees.size(), 20U);
  const Packing few = pack_blink(network, Demand::broadcast);
  ASSERT_EQ(few.trees.size(), 6U);
  for (const Tree& tree : few.trees) EXPECT_EQ(tree.rate, 1);
  EXPECT_EQ(few.rate, 6);
}

// delta = (1 + eps) ((1 + eps) m)^(-1/eps) is below the smallest double here.
TEST(Blink, a_delta_that_no_number_can_hold_does_no_harm) {
  topo::Topology ring;
  for (topo::Node host = 0; host < 40; ++host) ring.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 40; ++host) ring.link_both_ways(host, (host + 1) % 40, 1);
  const Network network(ring);
  const double m = static_cast<double>(network.arcs().size()), eps = 0.005;
  ASSERT_EQ(std::pow((1 + eps) * m, -1 / eps), 0);
  const Packing candidates = pack_by_weights(network, Demand::broadcast, 0, eps);
  EXPECT_GE(candidates.rate, (1 - 2 * eps) * 2);
}

// Goal: bounded work however far rates are apart. 1 beside 1e9 is a million units or more on every fast arc.
TEST(Blink, rates_far_apart_take_no_longer) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    topo::Topology topology = topo::random_network(seed, {.most_hosts = 7, .most_switches = 0, .symmetric = true});
    for (std::size_t link = 0; link < topology.links.size(); ++link) topology.links[link].rate *= link / 2 % 3 == 0 ? 1e9 : 1;
    const Network network(topology);
    if (network.hosts() < 2) continue;
    for (const Demand demand : kOneOrigin) {
      const Packing few = pack_blink(network, demand, 0);
      expect_sound(network, few, topology.name);
      EXPECT_GE(few.rate, 0.9 * pack_exactly(network, demand, 0).rate) << topology.name << " " << name(demand);
    }
  }
}

TEST(Blink, what_it_does_not_do_is_refused) {
  const Network network(dgx1v());
  const auto refusal = [&](Demand demand, double eps) -> std::string {
    try {
      pack_by_weights(network, demand, 0, eps);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(Demand::all_gather, 0.05), "blink: no trees are packed for all_gather (all_reduce, broadcast or reduce)");
  EXPECT_EQ(refusal(Demand::broadcast, 0), "blink: eps of 0; 0.005 to 0.25");
  EXPECT_EQ(refusal(Demand::broadcast, std::nan("")), "blink: eps of nan; 0.005 to 0.25");
}

}  // namespace
}  // namespace shoal::packing
