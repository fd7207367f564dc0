// Rings over links of their own: against golden counts, all ways of small networks, and what Blink gains on them.
#include "shoal/packing/rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "shoal/core/error.h"
#include "shoal/packing/pack.h"
#include "tests/packing/nvlink_allocations.h"
#include "tests/topo/random_networks.h"

namespace shoal::packing {
namespace {

using Links = std::vector<std::vector<int>>;

Links links_of(const Network& network) {
  Links links(network.hosts(), std::vector<int>(network.hosts(), 0));
  for (const Arc& arc : network.arcs()) links[arc.from][arc.to] = static_cast<int>(arc.rate);
  return links;
}

// Every order of hosts, as often as may be, then the others without it.
int most_by_trying(Links& links) {
  std::vector<Node> order(links.size());
  std::iota(order.begin(), order.end(), 0);
  int most = 0;
  do {
    const auto use = [&](int sign) {
      bool there = true;
      for (std::size_t k = 0; k < order.size(); ++k) {
        const Node a = order[k], b = order[(k + 1) % order.size()];
        links[a][b] += sign, links[b][a] += sign;
        there = there && links[a][b] >= 0;
      }
      return there;
    };
    if (order[1] < order.back() && use(-1)) most = std::max(most, 1 + most_by_trying(links));
    if (order[1] < order.back()) use(1);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return most;
}

void expect_rings(const Network& network, const std::vector<std::vector<Node>>& rings, const std::string& what) {
  Links links = links_of(network);
  for (const std::vector<Node>& ring : rings) {
    std::vector<Node> sorted = ring;
    std::sort(sorted.begin(), sorted.end());
    std::vector<Node> all(network.hosts());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all) << what;
    for (std::size_t k = 0; k < ring.size(); ++k) {
      const auto [a, b] = std::minmax(ring[k], ring[(k + 1) % ring.size()]);
      EXPECT_GE(--links[a][b], 0) << what;
    }
  }
}

TEST(Rings, every_class_of_allocations_has_its_golden_count) {
  for (const auto& entry : nvlink_classes(SHOAL_PACKING_DATA)) {
    const Network network(allocation(entry));
    const std::string what = entry["machine"].get<std::string>() + " " + entry["gpus"].dump();
    const auto rings = most_rings(network);
    EXPECT_EQ(rings.size(), entry["max_disjoint_hamiltonian_cycles"].get<std::size_t>()) << what;
    expect_rings(network, rings, what);
  }
}

TEST(Rings, no_way_has_more) {
  std::map<std::size_t, int> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 5, .most_switches = 0, .symmetric = true});
    const Network network(topology);
    if (network.hosts() < 3) continue;
    const auto rings = most_rings(network, 2);
    Links links = links_of(network);
    for (auto& row : links) {
      for (int& count : row) count /= 2;
    }
    ++seen[rings.size()];
    EXPECT_EQ(static_cast<int>(rings.size()), most_by_trying(links)) << topology.name;
  }
  EXPECT_GE(seen.size(), 4U);   // none, one, two, three
}

// 16 hosts, every two joined: 7 cycles use all but one link of each.
TEST(Rings, sixteen_hosts_all_joined_have_seven) {
  topo::Topology topology;
  for (topo::Node host = 0; host < 16; ++host) topology.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 16; ++host) {
    for (topo::Node other = 0; other < host; ++other) topology.link_both_ways(host, other, 1);
  }
  const Network network(topology);
  const auto rings = most_rings(network);
  EXPECT_EQ(rings.size(), 7U);
  expect_rings(network, rings, "16");
}

// The table of Blink: what trees gain over rings, of our own searches and of the golden figures. PCIe is a quarter of an NVLink.
TEST(Rings, the_gains_over_them_are_the_golden_ones) {
  std::map<std::string, std::vector<double>> all_reduce, broadcast;
  int none = 0;
  for (const auto& entry : nvlink_classes(SHOAL_PACKING_DATA)) {
    const Network network(allocation(entry));
    const std::string machine = entry["machine"], what = machine + " " + entry["gpus"].dump();
    const RingRates ours = ring_rates(network.hosts(), static_cast<std::uint32_t>(most_rings(network).size()), 0.25);
    const double n = network.hosts(), cycles = entry["max_disjoint_hamiltonian_cycles"];
    const double golden = cycles > 0 ? cycles * n / (n - 1) : 0.25, golden_broadcast = cycles > 0 ? 2 * cycles : 0.25;
    none += cycles == 0;
    double fastest = 0;
    for (Node root = 0; root < network.hosts(); ++root) fastest = std::max(fastest, pack_exactly(network, Demand::broadcast, root).rate);
    all_reduce[machine].push_back(pack_exactly(network, Demand::all_reduce).rate / ours.all_reduce);
    broadcast[machine].push_back(fastest / ours.broadcast);
    EXPECT_NEAR(all_reduce[machine].back(), fraction(entry["allreduce_rate"]) / golden, 1e-4) << what;
    EXPECT_NEAR(broadcast[machine].back(), entry["broadcast_rate_best_root"].get<double>() / golden_broadcast, 1e-4) << what;
    EXPECT_GE(all_reduce[machine].back(), 1 - 1e-5) << what;   // trees are never worse
  }
  EXPECT_EQ(none, 26);
  EXPECT_EQ(all_reduce["dgx1v_v100"].size(), 46U);
  EXPECT_EQ(all_reduce["dgx1p_p100"].size(), 14U);
}

TEST(Rings, what_is_not_searched_is_refused) {
  const auto refusal = [](const topo::Topology& topology) -> std::string {
    try {
      most_rings(Network(topology));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  topo::Topology star;
  star.hosts = {"a", "b"};
  star.link_both_ways(0, 1, 1);
  EXPECT_EQ(refusal(star), "rings: rings over 2 hosts; 3 to 16");
  star.hosts = {"a", "b", "c"};
  star.links.clear();
  star.switches = {"s"};
  for (topo::Node host = 0; host < 3; ++host) star.link_both_ways(host, 3, 1);
  EXPECT_EQ(refusal(star), "rings: rings over links through switches");
}

}  // namespace
}  // namespace shoal::packing
