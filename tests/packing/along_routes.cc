// Trees along the ways that bytes take, against every tree that there is.
#include <gtest/gtest.h>

#include "shoal/packing/linear_program.h"
#include "shoal/packing/pack.h"
#include "shoal/topo/routes.h"
#include "tests/packing/sound.h"
#include "tests/topo/random_networks.h"

namespace shoal::packing {
namespace {

constexpr Demand kOfOneOrigin[] = {Demand::all_reduce, Demand::broadcast, Demand::reduce};

// [which][host]: whom each host but the root hangs on.
std::vector<std::vector<Node>> all_trees(std::uint32_t hosts, Node root) {
  std::vector<std::vector<Node>> trees;
  std::vector<Node> above(hosts, 0);
  const auto is_tree = [&] {
    for (Node host = 0; host < hosts; ++host) {
      Node at = host;
      for (std::uint32_t steps = 0; at != root && steps < hosts; ++steps) at = above[at];
      if (at != root) return false;
    }
    return true;
  };
  const auto assign = [&](auto& self, Node host) -> void {
    if (host == hosts) {
      if (is_tree()) trees.push_back(above);
      return;
    }
    if (host == root) return self(self, host + 1);
    for (above[host] = 0; above[host] < hosts; ++above[host]) {
      if (above[host] != host) self(self, host + 1);
    }
  };
  assign(assign, 0);
  return trees;
}

// The linear programme of pack.h over all trees at once, links loaded by topo::Routes.
double best_of_all_trees(const topo::Topology& topology, Demand demand, Node only_root) {
  const auto hosts = static_cast<std::uint32_t>(topology.hosts.size());
  topo::Routes routes(topology);
  std::vector<double> limits;
  for (const topo::Link& link : topology.links) limits.push_back(link.rate);
  LinearProgram program(limits);
  for (Node root = 0; root < hosts; ++root) {
    if (demand != Demand::all_reduce && root != only_root) continue;
    const auto trees = all_trees(hosts, root);
    const std::vector<std::vector<Node>> none(1);
    for (const auto& up : goes_up(demand) ? trees : none) {
      for (const auto& down : goes_down(demand) ? trees : none) {
        std::vector<double> load(limits.size(), 0);
        const auto take = [&](Node from, Node to) {
          for (const std::uint32_t link : routes.path(from, to)) load[link] += 1;
        };
        for (Node host = 0; host < hosts; ++host) {
          if (host == root) continue;
          if (goes_up(demand)) take(host, up[host]);
          if (goes_down(demand)) take(down[host], host);
        }
        std::vector<std::pair<std::uint32_t, double>> column;
        for (std::uint32_t link = 0; link < load.size(); ++link) {
          if (load[link] > 0) column.emplace_back(link, load[link]);
        }
        program.add(1, column);
      }
    }
  }
  program.solve();
  return program.value();
}

// Goal: nothing is faster along routes than what column generation finds there. Method: random networks of 2 to 4 hosts with switches and parallel links.
TEST(AlongRoutes, exact_packings_are_the_best_of_all_trees) {
  int fewer = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    topo::Topology topology = topo::random_network(seed, {.most_hosts = 4, .most_switches = 3, .symmetric = seed % 2 == 0});
    if (topology.hosts.size() < 2) continue;
    const Network network = Network::along_routes(topology);
    for (const Demand demand : kOfOneOrigin) {
      const std::string what = topology.name + ", " + name(demand);
      const Packing exact = pack_exactly(network, demand, 0);
      const double best = best_of_all_trees(topology, demand, 0);
      expect_sound(network, exact, what);
      EXPECT_NEAR(exact.rate, best, 1e-5 * best) << what;

      const Packing free = pack_exactly(Network(topology), demand, 0);
      EXPECT_LE(best, free.bound * (1 + 1e-6)) << what;  // which no way of going can beat
      EXPECT_NEAR(along_routes(topology, free, false, true).rate, best, 1e-5 * best) << what;
      const Packing few = along_routes(topology, pack_few(Network(topology), demand, 0, &free), true, true);
      EXPECT_GE(few.rate, 0.9 * best) << what;
      EXPECT_LE(few.trees.size(), 16U) << what;
      fewer += best < 0.999 * free.rate ? 1 : 0;
    }
  }
  EXPECT_GT(fewer, 40);  // routes do matter in these networks
}

// Two lines of 1 between two switches, hosts of 10: what crosses is one pair's or several pairs'. With free ways a tree fills both lines; one connection
// has one of them, so that two hosts get 1, and more of them 2, because hashes of their pairs differ.
topo::Topology two_lines(topo::Node hosts_a_side) {
  topo::Topology topology;
  topology.name = "two lines";
  topology.switches = {"left", "right"};
  for (topo::Node host = 0; host < 2 * hosts_a_side; ++host) topology.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 2 * hosts_a_side; ++host) topology.link_both_ways(host, 2 * hosts_a_side + host / hosts_a_side, 10);
  for (int line = 0; line < 2; ++line) topology.link_both_ways(2 * hosts_a_side, 2 * hosts_a_side + 1, 1);
  return topology;
}

TEST(AlongRoutes, one_pair_has_one_of_parallel_lines_and_many_pairs_have_all) {
  for (const topo::Node side : {1U, 4U, 7U}) {
    const topo::Topology topology = two_lines(side);
    const Packing free = pack_exactly(Network(topology), Demand::all_reduce);
    EXPECT_NEAR(free.rate, 2, 1e-5);
    const Packing best = along_routes(topology, free, false, true);
    EXPECT_NEAR(best.rate, side == 1 ? 1 : 2, 1e-5) << side;
    expect_sound(Network::along_routes(topology), best, topology.name);
  }
}

// Only some ways are looked up where hosts are many: the trees stay, and their shares are the best for where they go.
TEST(AlongRoutes, without_a_search_the_trees_stay_and_get_their_best_rates) {
  const topo::Topology topology = two_lines(4);
  const Packing free = pack_exactly(Network(topology), Demand::all_reduce);
  const Packing kept = along_routes(topology, free, true, false), searched = along_routes(topology, free, true, true);
  EXPECT_LE(kept.trees.size(), free.trees.size());
  EXPECT_GE(searched.rate, kept.rate * (1 - 1e-9));
  EXPECT_EQ(best_rates(Network::along_routes(topology), Demand::all_reduce, 0, free.trees).rate, kept.rate);
}

}  // namespace
}  // namespace shoal::packing
