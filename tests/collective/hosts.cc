// Members that share hosts. Goal: who is on which host is told from their cards and from topologies; adding inside of hosts first is chosen where
// that is quicker, at the price of the fullest link, and sends from a host what one member would. Oracles: bytes counted in the program; rates worked
// by hand.
#include "shoal/collective/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/topo/generate.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

constexpr double kNear = 1e9, kFar = 25e6;

std::shared_ptr<const KnownNetwork> shared(const Hosts& hosts, double near = kNear, double far = kFar) {
  return KnownNetwork::without_trees(network_of(hosts, near, far));
}

LinkModel link_of(const Hosts& hosts, double near = kNear, double far = kFar) {
  LinkModel link{.alpha = 100e-6, .rate = far};
  link.network = shared(hosts, near, far);
  return link;
}

// What leaves a host, in whole vectors: the most of all hosts.
double leaves_a_host(const Program& program, const Hosts& hosts) {
  std::vector<double> left(count(hosts), 0);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (const Lane& lane : program.lanes[rank]) {
      for (const Loop& loop : lane) {
        for (const Op& op : loop.ops) {
          for (std::uint32_t i = 0; op.kind == OpKind::send && i < loop.times; ++i) {
            if (hosts[peer_of(program, op, i)] != hosts[rank]) left[hosts[rank]] += 1.0 / program.chunks;
          }
        }
      }
    }
  }
  return *std::max_element(left.begin(), left.end());
}

TEST(Hosts, members_with_one_boot_identity_share_a_host) {
  const auto member = [](const char* boot) { return net::MemberInfo{.id = {}, .host = "node", .boot = boot, .address = {}, .pid = 0}; };
  const std::vector members{member("b"), member("a"), member("b"), member("c")};
  EXPECT_EQ(hosts_of(members), (Hosts{0, 1, 0, 2}));
  EXPECT_EQ(count(hosts_of(members)), 3U);
}

TEST(Hosts, are_shared_where_there_are_several_and_one_has_several) {
  EXPECT_TRUE(are_shared({0, 1, 0}));
  EXPECT_FALSE(are_shared({0, 0, 0}));
  EXPECT_FALSE(are_shared({0, 1, 2}));
  EXPECT_FALSE(are_shared({}));
}

TEST(Hosts, in_a_topology_hang_on_one_switch) {
  EXPECT_EQ(hosts_in(topo::fat_tree(2, 3, {1}, {1})), (Hosts{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(hosts_in(topo::star(std::vector<topo::Wire>(3))), (Hosts{0, 0, 0}));
  EXPECT_EQ(hosts_in(topo::grid({.sizes = {2, 2}, .wraps = {false, false}, .wire = {1}, .dead = {}})), (Hosts{0, 1, 2, 3}));
  const Hosts mixed{0, 1, 0, 2, 1, 0};
  topo::Topology topology = network_of(mixed, kNear, kFar);
  EXPECT_EQ(hosts_in(topology), mixed);
  topology.link_both_ways(0, 1, kNear);  // these two reach each other past their switches as well
  EXPECT_EQ(hosts_in(topology), (Hosts{0, 1, 2, 3, 4, 2}));
}

// Each host sends 2 (G - 1) / G vectors, as one member on each would by a ring; its members' links carry the rest.
TEST(Hosts, send_by_the_hierarchy_what_one_member_of_each_would_send) {
  for (const auto& [hosts, members] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{{2, 2}, {2, 8}, {3, 2}, {4, 4}}) {
    Hosts together;
    for (std::uint32_t rank = 0; rank < hosts * members; ++rank) together.push_back(rank / members);
    const auto network = shared(together);
    const Program& program = network->made(Collective::all_reduce, kHierarchical)->program();
    const double one = 2. * (hosts - 1) / hosts;
    EXPECT_NEAR(leaves_a_host(program, together), one, 1e-9);
    EXPECT_NEAR(network->rate(Collective::all_reduce, kHierarchical), kFar / one, 1e-6 * kFar);
    EXPECT_GT(leaves_a_host(build(Collective::all_reduce, "ring", hosts * members), together), 1.2 * one);
  }
}

TEST(Hosts, hierarchy_is_chosen_where_links_between_hosts_are_slower) {
  const Hosts hosts{0, 0, 1, 1};
  EXPECT_EQ(choose(Collective::all_reduce, 4, 64e6, link_of(hosts)), kHierarchical);
  EXPECT_EQ(choose(Collective::all_reduce, 4, 64e6, link_of({0, 1, 0, 1})), kHierarchical);
  EXPECT_NE(choose(Collective::all_reduce, 4, 64, link_of(hosts)), kHierarchical);              // few messages matter more
  EXPECT_NE(choose(Collective::all_reduce, 4, 64e6, link_of(hosts, kFar, kNear)), kHierarchical);
  EXPECT_NE(choose(Collective::all_reduce, 4, 64e6, link_of(hosts), true), kHierarchical);      // in rank order only
  EXPECT_NE(choose(Collective::all_reduce, 3, 64e6, link_of(hosts)), kHierarchical);            // a group of other members
  EXPECT_NE(choose(Collective::all_gather, 4, 64e6, link_of(hosts)), kHierarchical);
  LinkModel wished = link_of(hosts);
  wished.tuning = std::make_shared<const Tuning>("allreduce:@hierarchical");
  EXPECT_EQ(choose(Collective::all_reduce, 4, 64, wished), kHierarchical);
}

// 8 MB of four members on two hosts: one vector between hosts, four steps.
TEST(Hosts, hierarchy_has_the_price_of_the_fullest_link) {
  const LinkModel link = link_of({0, 0, 1, 1});
  EXPECT_EQ(slice_bytes(Collective::all_reduce, kHierarchical, 4, 8e6, link), 25'024U);  // a millisecond of the link, in lines
  EXPECT_NEAR(price(Collective::all_reduce, kHierarchical, 4, 8e6, link), 4 * 100e-6 + 8e6 / kFar + 0.75 * 8e6 / link.add_rate, 1e-9);
  // A ring's four links have 1.5 vectors each, and two of them are those between hosts.
  EXPECT_NEAR(price(Collective::all_reduce, "ring", 4, 8e6, link), 6 * 100e-6 + 1.5 * 8e6 / kFar + 0.75 * 8e6 / link.add_rate, 1e-9);
}

TEST(Hosts, hierarchy_where_no_hosts_are_known_is_refused_with_what_it_needs) {
  EXPECT_EQ(refusal([] { program_named(Collective::all_reduce, kHierarchical, 4); }),
            "hierarchical: nothing is known of shared hosts for all_reduce of 4 members (it adds inside of each host first: run several members on one "
            "of several hosts, 64 at most)");
}

TEST(Hosts, a_plan_keeps_the_network_without_trees_as_words) {
  const auto made = shared({0, 1, 0});
  const auto read = KnownNetwork::from_json(made->to_json(), "plan");
  EXPECT_EQ(read->to_json(), made->to_json());
  EXPECT_EQ(read->made(Collective::all_reduce, kTrees), nullptr);
  EXPECT_EQ(to_json(read->made(Collective::all_reduce, kHierarchical)->program()), to_json(made->made(Collective::all_reduce, kHierarchical)->program()));
}

using Pair = std::pair<std::uint32_t, std::uint32_t>;
std::vector<Pair> pairs(const std::vector<topo::Flow>& flows) {
  std::vector<Pair> pairs;
  for (const topo::Flow& flow : flows) pairs.emplace_back(flow.from, flow.to);
  return pairs;
}

TEST(Hosts, are_probed_within_and_between_at_once) {
  const Hosts hosts{0, 0, 1, 0, 1, 2};
  EXPECT_THAT(pairs(host_flows(hosts)), testing::ElementsAre(Pair(3, 2), Pair(4, 5), Pair(5, 0), Pair(0, 1), Pair(1, 3), Pair(3, 0), Pair(2, 4), Pair(4, 2)));
  const HostRates found = host_rates(hosts, {2e6, 1e6, 3e6, 9e6, 7e6, 8e6, 9e6, 9e6});
  EXPECT_EQ(found.near, 7e6);
  EXPECT_EQ(found.far, 1e6);
  EXPECT_EQ(found.inequality, 3);
  EXPECT_THAT(pairs(host_flows({0, 1, 2})), testing::ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 0)));
  EXPECT_TRUE(std::isinf(host_rates({0, 1, 2}, {1e6, 1e6, 1e6}).near));
}

}  // namespace
}  // namespace shoal::collective
