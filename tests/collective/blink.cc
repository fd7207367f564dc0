// Blink's programs from end to end: packed, proved, certified, run with whole numbers on a scripted network.
#include <gtest/gtest.h>

#include "shoal/collective/blink.h"
#include "shoal/collective/build_trees.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/synthesize.h"
#include "shoal/collective/three_phases.h"
#include "shoal/core/error.h"
#include "shoal/topo/generate.h"
#include "tests/collective/scripted_group.h"
#include "tests/topo/random_networks.h"

namespace shoal::collective {
namespace {

// Hosts alone, parallel links as one: there a transfer has one way, that of its tree, and the program goes as fast as its packing.
topo::Topology one_way_each(std::uint64_t seed) {
  topo::Topology topology = topo::random_network(seed, {.most_hosts = 7, .most_switches = 0, .symmetric = seed % 2 == 0});
  const packing::Network network(topology);
  topology.links.clear();
  for (const packing::Arc& arc : network.arcs()) topology.links.push_back({arc.from, arc.to, arc.rate, Nanoseconds(0)});
  return topology;
}

TEST(Blink, programs_are_proved_run_and_within_a_tenth_of_the_bound) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const topo::Topology topology = one_way_each(seed);
    const std::uint32_t ranks = static_cast<std::uint32_t>(topology.hosts.size());
    for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::reduce}) {
      SCOPED_TRACE(topology.name + ", " + name(collective));
      const std::uint32_t root = collective == Collective::all_reduce ? 0 : static_cast<std::uint32_t>(seed % ranks);
      const Program program = synthesize(topology, collective, Synthesis::blink, root);
      EXPECT_TRUE(program.name.starts_with("blink"));
      if (ranks > 1) {
        EXPECT_GE(check_certificate(program, topology).efficiency(), 0.9);
      }
      expect_runs(program, 997, seed);
    }
  }
}

// 3 and 5 GPUs of two DGX-1V, NVLinks of 22 GB/s, 10 GB/s to the NIC and `line` between the two.
topo::Topology two_servers(double line) {
  topo::Topology topology;
  topology.name = "3 + 5";
  for (int gpu = 0; gpu < 8; ++gpu) topology.hosts.push_back("g" + std::to_string(gpu));
  topology.switches = {"nic_0", "nic_1"};
  for (const auto& [a, b] : {std::pair(0U, 1U), {0, 2}, {3, 4}, {3, 5}, {4, 5}, {5, 6}, {6, 7}}) topology.link_both_ways(a, b, 22e9);
  for (topo::Node gpu = 0; gpu < 8; ++gpu) topology.link_both_ways(gpu, gpu < 3 ? 8 : 9, 10e9);
  topology.link_both_ways(8, 9, line);
  return topology;
}

// Three phases over servers of unequal sizes fill the line between them, and no schedule has more.
TEST(Blink, sums_in_two_servers_then_between_them) {
  const topo::Topology topology = two_servers(5e9);
  EXPECT_EQ(servers_in(topology), (Hosts{0, 0, 0, 1, 1, 1, 1, 1}));
  const Program program = synthesize(topology, Collective::all_reduce, Synthesis::blink);
  EXPECT_EQ(program.name, "blink_servers");
  const Proof proof = check_certificate(program, topology);
  EXPECT_NEAR(proof.rate, 5e9, 5e3);
  EXPECT_NEAR(proof.bound, 5e9, 1e4);
  expect_runs(program, 997, program.ranks);
}

// Each tree goes to one host of another server at most: what a server sends elsewhere is its roots' sums and results, 2 (S - 1) / S of the data.
TEST(Blink, servers_send_each_other_what_one_hop_costs) {
  for (const std::uint32_t servers : {2U, 3U, 4U}) {
    const topo::Topology racks = topo::fat_tree(servers, 3, {10e9, {}}, {2e9, {}});
    const Program program = tree_program("three", Collective::all_reduce, 3 * servers, three_phases(racks));
    EXPECT_NEAR(congestion(program, racks).rate, 2e9 * servers / (2. * (servers - 1)), 1e5) << servers;
    expect_runs(program, 997, program.ranks);
  }
  // 1, 2 and 4 hosts, each with links of its own.
  topo::Topology uneven;
  uneven.name = "1 + 2 + 4";
  for (int host = 0; host < 7; ++host) uneven.hosts.push_back("h" + std::to_string(host));
  uneven.switches = {"core", "a", "b"};
  uneven.link_both_ways(0, 7, 1);
  for (const topo::Node host : {1U, 2U}) uneven.link_both_ways(host, 8, 3);
  for (topo::Node host = 3; host < 7; ++host) uneven.link_both_ways(host, 9, 2 + host);
  uneven.link_both_ways(3, 4, 7);
  uneven.link_both_ways(8, 7, 1);
  uneven.link_both_ways(9, 7, 1);
  EXPECT_EQ(servers_in(uneven), (Hosts{0, 1, 1, 2, 2, 2, 2}));
  expect_runs(tree_program("three", Collective::all_reduce, 7, three_phases(uneven)), 997, 7);
}

// Three GPUs with NVLinks 0-1 and 0-2 of 20 GB/s, and PCIe of 10 GB/s through a switch for all: what goes by PCIe may not take an NVLink, though one leads there.
TEST(Blink, data_are_split_over_two_kinds_of_links_by_rate_and_latency) {
  topo::Topology topology;
  topology.name = "3 GPUs";
  topology.hosts = {"g0", "g1", "g2"};
  topology.switches = {"pcie"};
  topology.link_both_ways(0, 1, 20e9);
  topology.link_both_ways(0, 2, 20e9);
  for (topo::Node gpu = 0; gpu < 3; ++gpu) topology.link_both_ways(gpu, 3, 10e9);
  const std::optional<Program> program = blink_hybrid(topology, Collective::all_reduce, 0, 64e6);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->name, "blink_hybrid");
  const double direct = congestion(synthesize(topology, Collective::all_reduce, Synthesis::few), topology).rate;
  const Proof proof = check_certificate(*program, topology);
  EXPECT_LT(direct, 0.95 * proof.rate);  // trees that mix the two
  EXPECT_NEAR(proof.rate, 27.5e9, 0.03 * 27.5e9);
  expect_runs(*program, 997, program->ranks);
  EXPECT_EQ(to_json(program_from_json(to_json(*program))), to_json(*program));
  // Each kind's part of the load lies on its own links: NVLinks alone would be the slower for it.
  Program mixed = *program;
  mixed.by_switches.clear();
  EXPECT_LT(congestion(mixed, topology).rate, 0.95 * proof.rate);
  // PCIe that begins after NVLinks have moved all gets nothing.
  for (topo::Link& link : topology.links) link.latency = Nanoseconds(link.from == 3 || link.to == 3 ? 10'000'000 : 0);
  EXPECT_FALSE(blink_hybrid(topology, Collective::all_reduce, 0, 64e6));
  topology.links.resize(4);
  EXPECT_FALSE(blink_hybrid(topology, Collective::all_reduce, 0, 64e6));  // there is one kind only
}

TEST(Blink, what_it_does_not_do_is_refused) {
  const auto refusal = [](const topo::Topology& topology, Collective collective) -> std::string {
    try {
      synthesize(topology, collective, Synthesis::blink);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  topo::Topology ring;
  ring.name = "ring";
  for (topo::Node host = 0; host < 65; ++host) ring.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 65; ++host) ring.link_both_ways(host, (host + 1) % 65, 1);
  EXPECT_EQ(refusal(ring, Collective::all_reduce), "blink: a network of 65 hosts; at most 64 are searched (take few: it proves a bound, too)");
  ring.hosts.resize(2);
  ring.links.clear();
  ring.link_both_ways(0, 1, 1);
  EXPECT_EQ(refusal(ring, Collective::all_gather), "blink: no trees are packed for all_gather (all_reduce, broadcast or reduce)");
}

}  // namespace
}  // namespace shoal::collective
