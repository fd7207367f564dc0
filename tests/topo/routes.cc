// Which links transfers take: held against small networks by hand, and against all paths of random ones.
#include "shoal/topo/routes.h"

#include <gtest/gtest.h>

#include <random>

#include "shoal/core/error.h"

namespace shoal::topo {
namespace {

Topology network(std::size_t hosts, std::size_t switches, const std::vector<std::pair<Node, Node>>& links) {
  Topology topology;
  topology.name = "net";
  for (std::size_t i = 0; i < hosts; ++i) topology.hosts.push_back("h" + std::to_string(i));
  for (std::size_t i = 0; i < switches; ++i) topology.switches.push_back("s" + std::to_string(i));
  for (const auto& [from, to] : links) topology.links.push_back({from, to, 1, Nanoseconds(0)});
  return topology;
}
using Path = std::vector<std::uint32_t>;

TEST(Routes, take_the_fewest_links) {
  // h0 - s3 - h1, and the longer way s3 - s4 - h1
  const Topology topology = network(3, 2, {{0, 3}, {3, 4}, {4, 1}, {3, 1}, {1, 2}});
  Routes routes(topology);
  EXPECT_EQ(routes.path(0, 1), (Path{0, 3}));
  EXPECT_EQ(routes.path(1, 2), (Path{4}));
  EXPECT_EQ(routes.path(0, 0), Path{});
}

TEST(Routes, pass_hosts_only_where_no_way_is_through_switches) {
  // h0 -> h1 -> h2 has two links; h0 -> s3 -> s4 -> h2 has three and disturbs no host.
  const Topology both = network(3, 2, {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {4, 2}});
  EXPECT_EQ(Routes(both).path(0, 2), (Path{2, 3, 4}));
  const Topology line = network(3, 0, {{0, 1}, {1, 2}});
  EXPECT_EQ(Routes(line).path(0, 2), (Path{0, 1}));
}

// Hosts 0 .. kHosts-1 left, as many right, a switch on each side.
constexpr Node kHosts = 64, kLeft = 2 * kHosts, kRight = kLeft + 1;
std::vector<std::pair<Node, Node>> two_sides() {
  std::vector<std::pair<Node, Node>> links;
  for (Node host = 0; host < kHosts; ++host) links.insert(links.end(), {{host, kLeft}, {kRight, kHosts + host}});
  return links;
}

TEST(Routes, a_pair_keeps_to_one_of_equal_paths_and_many_spread) {
  std::vector<std::pair<Node, Node>> links = two_sides();
  for (Node spine = kRight + 1; spine < kRight + 5; ++spine) links.insert(links.end(), {{kLeft, spine}, {spine, kRight}});
  const Topology topology = network(2 * kHosts, 6, links);
  Routes routes(topology), again(topology);
  std::vector<int> taken(4);
  for (Node from = 0; from < kHosts; ++from) {
    for (Node to = kHosts; to < 2 * kHosts; ++to) {
      const Path path = routes.path(from, to);
      ASSERT_EQ(path.size(), 4U);
      EXPECT_EQ(path, again.path(from, to));
      ++taken[topology.links[path[1]].to - kRight - 1];
    }
  }
  for (const int count : taken) EXPECT_NEAR(count, 1024, 150);
}

TEST(Routes, of_parallel_links_pairs_take_the_fastest_and_spread_over_equal_ones) {
  std::vector<std::pair<Node, Node>> links = two_sides();
  const auto first = static_cast<std::uint32_t>(links.size());
  for (int k = 0; k < 4; ++k) links.emplace_back(kLeft, kRight);
  Topology topology = network(2 * kHosts, 2, links);
  topology.links[first + 1].rate = topology.links[first + 3].rate = 2.5;
  Routes routes(topology);
  std::vector<int> taken(4);
  for (Node from = 0; from < kHosts; ++from) {
    for (Node to = kHosts; to < 2 * kHosts; ++to) ++taken[routes.path(from, to)[1] - first];
  }
  EXPECT_EQ(taken[0] + taken[2], 0);
  EXPECT_NEAR(taken[1], 2048, 200);

  Topology direct = network(2, 0, {{0, 1}, {0, 1}});
  direct.links[1].rate = 10;
  EXPECT_EQ(Routes(direct).path(0, 1), Path{1});
}

TEST(Routes, name_both_ends_where_no_path_exists) {
  const Topology topology = network(3, 0, {{0, 1}, {2, 1}});
  try {
    Routes(topology).path(0, 2);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_STREQ(error.what(), "net: no path from \"h0\" to \"h2\"");
  }
}

// Goal: shortest on any network. Method: 300 random networks; the oracle is Floyd and Warshall's algorithm over all nodes, where
// hosts may pass on or not. Expected: each path is connected, and as long as the oracle says.
TEST(Routes, are_shortest_on_random_networks) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    const std::size_t hosts = 1 + random() % 6, switches = random() % 5, nodes = hosts + switches;
    std::vector<std::pair<Node, Node>> links;
    for (std::size_t i = 0; i < nodes * 2; ++i) {
      const Node from = static_cast<Node>(random() % nodes), to = static_cast<Node>(random() % nodes);
      if (from != to) links.emplace_back(from, to);
    }
    const Topology topology = network(hosts, switches, links);
    Routes routes(topology);
    constexpr int kFar = 1000;
    std::vector<std::vector<int>> best[2];
    for (int through = 0; through < 2; ++through) {
      auto& far = best[through];
      far.assign(nodes, std::vector<int>(nodes, kFar));
      for (const auto& [from, to] : links) far[from][to] = 1;
      for (std::size_t i = 0; i < nodes; ++i) far[i][i] = 0;
      for (std::size_t k = through == 1 ? 0 : hosts; k < nodes; ++k) {
        for (std::size_t i = 0; i < nodes; ++i) {
          for (std::size_t j = 0; j < nodes; ++j) far[i][j] = std::min(far[i][j], far[i][k] + far[k][j]);
        }
      }
    }
    for (Node from = 0; from < hosts; ++from) {
      for (Node to = 0; to < hosts; ++to) {
        const bool through = best[0][from][to] == kFar;
        const int expected = best[through][from][to];
        if (expected == kFar) {
          EXPECT_THROW(routes.path(from, to), Error);
          continue;
        }
        const Path path = routes.path(from, to);
        ASSERT_EQ(static_cast<int>(path.size()), expected) << "round " << round << ", " << from << " to " << to;
        Node at = from;
        for (const std::uint32_t link : path) {
          ASSERT_EQ(topology.links[link].from, at);
          at = topology.links[link].to;
          const bool passed_by_host = at != to && at < hosts;
          EXPECT_LE(passed_by_host, through);
        }
        EXPECT_EQ(at, to);
      }
    }
  }
}

}  // namespace
}  // namespace shoal::topo
