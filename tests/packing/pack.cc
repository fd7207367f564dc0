// The rates of packings against theorems, by trying every cut and every partition, and what any packing must be.
#include "shoal/packing/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "shoal/core/seed.h"
#include "shoal/topo/generate.h"
#include "tests/packing/sound.h"
#include "tests/topo/random_networks.h"

namespace shoal::packing {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Edmonds 1973: the smallest cut between the root and any set of nodes that has a host.
double smallest_cut(const Network& network, Node root) {
  double least = kInfinite;
  for (std::uint32_t set = 1; set < 1U << network.nodes(); ++set) {  // the far side
    if (set >> root & 1 || (set & ((1U << network.hosts()) - 1)) == 0) continue;
    double into = 0;
    for (const Arc& arc : network.arcs()) into += !(set >> arc.from & 1) && (set >> arc.to & 1) ? arc.rate : 0;
    least = std::min(least, into);
  }
  return least;
}

// Tutte and Nash-Williams 1961: over all partitions, capacity that crosses (one direction) / (parts - 1).
double smallest_partition(const Network& network) {
  double least = kInfinite;
  std::vector<std::uint32_t> part(network.nodes(), 0);
  const auto assign = [&](auto& self, Node node, std::uint32_t parts) -> void {
    if (node == network.nodes()) {
      if (parts < 2) return;
      double across = 0;
      for (const Arc& arc : network.arcs()) across += part[arc.from] < part[arc.to] ? arc.rate : 0;
      least = std::min(least, across / (parts - 1));
      return;
    }
    for (part[node] = 0; part[node] <= parts; ++part[node]) self(self, node + 1, std::max(parts, part[node] + 1));
  };
  assign(assign, 0, 0);
  return least;
}

TEST(Pack, a_broadcast_is_as_fast_as_the_smallest_cut) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 6, .most_switches = 3});
    const Network network(topology);
    if (network.hosts() < 2) continue;
    const Packing packing = pack_exactly(network, Demand::broadcast, 0);
    expect_sound(network, packing, topology.name);
    EXPECT_GE(packing.efficiency(), 1 - 2e-6) << topology.name;
    EXPECT_LE(packing.rate, smallest_cut(network, 0) * (1 + 1e-9)) << topology.name;
    EXPECT_TRUE(!network.direct() || packing.rate >= smallest_cut(network, 0) * (1 - 1e-5)) << topology.name;  // switches do not multiply
  }
}

TEST(Pack, an_all_reduce_is_as_fast_as_the_smallest_partition) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 7, .most_switches = 0, .symmetric = true});
    const Network network(topology);
    if (network.hosts() < 2) continue;
    const Packing packing = pack_exactly(network, Demand::all_reduce);
    expect_sound(network, packing, topology.name);
    EXPECT_NEAR(packing.rate, smallest_partition(network), 1e-5 * packing.rate) << topology.name;
  }
}

// Goal: nothing is lost by mirrored trees in symmetric networks, with switches or without. Method: one direction of one link gets
// 1e-9 more, and trees up and down may differ. Expected: the same rate.
TEST(Pack, mirrored_trees_are_as_good_as_any_where_links_are_symmetric) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    topo::Topology topology = topo::random_network(seed, {.most_hosts = 6, .most_switches = 3, .symmetric = true});
    if (topology.hosts.size() < 2) continue;
    const double mirrored_rate = pack_exactly(Network(topology), Demand::all_reduce).rate;
    topology.links[0].rate *= 1 + 1e-9;
    const Network bent(topology);
    ASSERT_FALSE(mirrored(bent, Demand::all_reduce));
    EXPECT_NEAR(pack_exactly(bent, Demand::all_reduce).rate, mirrored_rate, 1e-5 * mirrored_rate) << topology.name;
  }
}

TEST(Pack, every_demand_meets_its_bound_on_random_networks_and_few_trees_come_near) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 7, .most_switches = 3, .symmetric = seed % 3 == 0});
    const Network network(topology);
    if (network.hosts() < 2) continue;
    for (const Demand demand : {Demand::all_reduce, Demand::broadcast, Demand::reduce, Demand::all_gather, Demand::reduce_scatter}) {
      const std::string what = topology.name + ", " + name(demand);
      const Node root = static_cast<Node>(seed % network.hosts());
      const Packing exact = pack_exactly(network, demand, root);
      expect_sound(network, exact, what);
      EXPECT_GE(exact.efficiency(), 1 - 2e-6) << what;
      const Packing few = pack_few(network, demand, root, &exact);
      expect_sound(network, few, what);
      EXPECT_GE(few.efficiency(), 0.9) << what;
      EXPECT_LE(few.trees.size(), 16 * origins(network, demand, root).size()) << what;
    }
  }
}

// A cloud: a link from each to each, every one with its own rate, so that each tree is full somewhere else.
TEST(Pack, sixteen_trees_come_near_where_no_two_links_are_alike) {
  topo::Topology cloud;
  for (topo::Node host = 0; host < 8; ++host) cloud.hosts.push_back("region" + std::to_string(host));
  for (topo::Node from = 0; from < 8; ++from) {
    for (topo::Node to = 0; to < 8; ++to) {
      if (from != to) cloud.links.push_back({from, to, 1 + 4 * uniform(3, from, to, 0), Nanoseconds(0)});
    }
  }
  const Network network(cloud);
  const Packing exact = pack_exactly(network, Demand::all_reduce);
  const Packing few = pack_few(network, Demand::all_reduce, 0, &exact);
  expect_sound(network, few, "cloud");
  EXPECT_LE(few.trees.size(), 16U);
  EXPECT_GE(few.efficiency(), 0.9);  // 0.899 before trees are swapped
}

TEST(Pack, without_the_exact_bound_a_true_one_is_proved) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 7, .most_switches = 2, .symmetric = true});
    const Network network(topology);
    if (network.hosts() < 2) continue;
    const Packing few = pack_few(network, Demand::all_reduce, 0);
    expect_sound(network, few, topology.name);
    EXPECT_GE(few.bound, pack_exactly(network, Demand::all_reduce).rate * (1 - 1e-9)) << topology.name;
  }
}

// A line over the hosts of a star comes within 2 % of the bound; a hub with 63 spokes would come to 3 % of it.
TEST(Pack, one_tree_over_a_star_is_a_line) {
  topo::Topology star;
  star.switches = {"s"};
  for (topo::Node host = 0; host < 64; ++host) star.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 64; ++host) star.link_both_ways(host, 64, 1);
  const Packing packing = pack_few(Network(star), Demand::all_reduce, 0);
  ASSERT_EQ(packing.trees.size(), 1U);
  EXPECT_EQ(height(packing.trees[0]), 32U);
  EXPECT_NEAR(packing.bound, 64.0 / 126, 1e-9);
  EXPECT_NEAR(packing.rate, 0.5, 1e-9);
}

// So many hosts that a hop is hung elsewhere by a look at its neighbours alone.
TEST(Pack, trees_of_a_large_torus_span_it_and_come_near_the_bound) {
  const Network torus(topo::grid({{16, 16}, {true, true}, {}, {}}));
  for (const Demand demand : {Demand::all_reduce, Demand::reduce, Demand::broadcast}) {
    const Packing packing = pack_few(torus, demand, 0);
    expect_sound(torus, packing, "torus");
    EXPECT_GE(packing.efficiency(), 0.95);
  }
}

}  // namespace
}  // namespace shoal::packing
