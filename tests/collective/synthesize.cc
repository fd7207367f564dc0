// Programs made for networks: proved by the verifier, certified, and run with whole numbers over the scripted network.
#include "shoal/collective/synthesize.h"

#include <gtest/gtest.h>

#include "shoal/collective/build_trees.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/hosts.h"
#include "shoal/collective/known_network.h"
#include "shoal/collective/select.h"
#include "shoal/core/error.h"
#include "shoal/topo/generate.h"
#include "tests/collective/scripted_group.h"
#include "tests/from_environment.h"
#include "tests/refusal.h"
#include "tests/topo/random_networks.h"

namespace shoal::collective {
namespace {

constexpr Collective kPacked[] = {Collective::all_reduce, Collective::broadcast, Collective::reduce, Collective::all_gather,
                                       Collective::reduce_scatter};

topo::Topology slow_host_of_four() {
  topo::Topology topology;
  topology.name = "one slow host";
  topology.switches = {"s"};
  for (topo::Node host = 0; host < 4; ++host) topology.hosts.push_back("h" + std::to_string(host));
  for (topo::Node host = 0; host < 4; ++host) topology.link_both_ways(host, 4, host == 3 ? 25e6 : 125e6);
  return topology;
}

// Goal: whatever the network, a right program with a true certificate. Method: 2,000 networks (SHOAL_NETWORKS), each one collective in turn, few trees or
// exact ones, sizes 0, 1, members - 1 and a prime.
TEST(Synthesize, programs_for_random_networks_are_proved_certified_and_right) {
  for (std::uint64_t seed = 0; seed < from_environment("SHOAL_NETWORKS", 2000); ++seed) {
    const topo::Topology topology = topo::random_network(seed, {.most_hosts = 8, .most_switches = 3, .symmetric = seed % 4 == 0});
    SCOPED_TRACE(topology.name);
    const Collective collective = kPacked[seed % 5];
    const Synthesis how = seed % 3 == 0 ? Synthesis::exact : Synthesis::few;
    const auto ranks = static_cast<std::uint32_t>(topology.hosts.size());
    const Program program = synthesize(topology, collective, how, static_cast<std::uint32_t>(seed % ranks));
    const std::uint64_t sizes[] = {0, 1, ranks - 1, 97};
    expect_runs(program, sizes[seed % 4], seed);
    EXPECT_EQ(to_json(program_from_json(to_json(program))), to_json(program));
    if (ranks == 1) continue;
    const Proof proof = check_certificate(program, topology);
    EXPECT_LE(proof.rate, proof.bound * (1 + 1e-6));
    if (HasFatalFailure()) return;
  }
}

// Two machines of eight A100, as ForestColl models them (Zhao et al., 2024; its topologies.py): GB/s each way, 300 to the machine's switch and 25 to a
// switch that both machines share by a card of its own.
topo::Topology two_machines_of_a100() {
  topo::Topology topology;
  topology.name = "2 x 8 A100";
  for (const char* const machine : {"0_", "1_"}) {
    for (int gpu = 0; gpu < 8; ++gpu) topology.hosts.push_back(machine + std::to_string(gpu));
  }
  topology.switches = {"nvswitch 0", "nvswitch 1", "ib"};
  for (topo::Node gpu = 0; gpu < 16; ++gpu) {
    topology.link_both_ways(gpu, 16 + gpu / 8, 300e9);
    topology.link_both_ways(gpu, 18, 25e9);
  }
  return topology;
}

// Goal: the optima that ForestColl publishes for this network. By hand: a GPU gets 15/16 of what is gathered by 325 GB/s, and by sums it goes twice;
// what one GPU tells all others, by eight cards.
TEST(Synthesize, on_two_machines_of_a100_the_bounds_are_forestcolls) {
  const topo::Topology topology = two_machines_of_a100();
  for (const auto& [collective, optimum] :
       {std::pair(Collective::all_gather, 325e9 * 16 / 15), std::pair(Collective::reduce_scatter, 325e9 * 16 / 15),
        std::pair(Collective::broadcast, 200e9)}) {
    SCOPED_TRACE(name(collective));
    const Program program = synthesize(topology, collective, Synthesis::exact);
    expect_runs(program, 16 * 7, 1);
    const Proof proof = check_certificate(program, topology);
    EXPECT_NEAR(proof.bound / optimum, 1, 1e-6);
    EXPECT_NEAR(proof.rate / optimum, 1, 1e-4);  // parts of the data are whole numbers
  }
}

TEST(Synthesize, where_one_host_is_slow_it_is_a_leaf) {
  const Program program = synthesize(slow_host_of_four(), Collective::all_reduce);
  const Proof proof = check_certificate(program, slow_host_of_four());
  EXPECT_NEAR(proof.bound, 25e6, 1);        // its link carries all data once each way
  EXPECT_NEAR(proof.rate, 25e6, 1);
  EXPECT_NEAR(congestion(build(Collective::all_reduce, "ring", 4), slow_host_of_four()).rate, 25e6 / 1.5, 1);
}

// Host 0 sends one hop of the half and two of each quarter, so that all go at a fifth of its link until the quarters end, after 1.25. The other quarter of the
// half is alone then, at half of the rate: host 1 sends it twice.
TEST(Congestion, hops_share_links_evenly_whatever_they_carry) {
  const DataTree half{.root = 1, .up = {1, 1, 1}, .down = {1, 1, 1}, .share = 2}, quarter{.root = 0, .up = {0, 0, 0}, .down = {0, 0, 0}};
  const topo::Topology star = topo::star(std::vector<topo::Wire>(3, topo::Wire{1e6, {}}));
  const Program program = tree_program("three", Collective::all_reduce, 3, {half, quarter, quarter});
  EXPECT_NEAR(1e6 / congestion(program, star).rate, 1.5, 1e-6);
  EXPECT_NEAR(1e6 / even_rate(program, star), 1.75, 1e-6);
}

TEST(Synthesize, certificates_that_claim_too_much_or_another_network_are_refused) {
  const topo::Topology topology = slow_host_of_four();
  const Program good = synthesize(topology, Collective::all_reduce);
  Program program = good;
  program.certificate->rate *= 2;
  EXPECT_EQ(refusal([&] { check_certificate(program, topology); }), "program trees: its ops come to a rate of 2.5e+07, not of 5e+07");
  program = good;
  program.certificate->bound /= 2;
  EXPECT_EQ(refusal([&] { check_certificate(program, topology); }), "program trees: its prices prove a bound of 2.5e+07, not of 1.25e+07");
  program = good;
  program.certificate->prices.pop_back();
  EXPECT_EQ(refusal([&] { check_certificate(program, topology); }), "program trees: its certificate has 7 prices for 8 arcs");
  program.certificate.reset();
  EXPECT_EQ(refusal([&] { check_certificate(program, topology); }), "program trees: it has no certificate: it was made for no topology");
  topo::Topology other = topology;
  other.links[0].rate *= 2;
  EXPECT_EQ(refusal([&] { check_certificate(good, other); }), "program trees: its certificate is for another topology than one slow host");
  other.name = "renamed";
  other.links[0].rate /= 2;
  EXPECT_EQ(refusal([&] { check_certificate(good, other); }), "nothing was refused");
}

TEST(Synthesize, what_cannot_be_done_is_one_line) {
  topo::Topology topology = slow_host_of_four();
  EXPECT_EQ(refusal([&] { synthesize(topology, Collective::all_to_all); }, Code::unsupported),
            "synthesize: no trees are packed for all_to_all (all_reduce, broadcast, reduce, all_gather or reduce_scatter)");
  EXPECT_EQ(refusal([&] { synthesize(topology, Collective::reduce, Synthesis::few, 4); }), "one slow host: root 4 of 4 hosts");
  topology.links.resize(6);
  EXPECT_EQ(refusal([&] { synthesize(topology, Collective::all_reduce); }), "topology one slow host: nothing leads from h0 to h3");
}

// The network that all take from one: the same words make the same programs.
TEST(KnownNetwork, what_one_member_made_the_others_read) {
  const auto made = KnownNetwork::made_for(slow_host_of_four());
  const auto read = KnownNetwork::from_json(made->to_json(), "rank 0");
  EXPECT_EQ(read->to_json(), made->to_json());
  EXPECT_EQ(read->rate(Collective::all_reduce, kTrees), made->rate(Collective::all_reduce, kTrees));
  EXPECT_EQ(made->course(Collective::all_reduce, kTrees).steps, 2U);
  for (std::uint32_t root = 0; root < 4; ++root) {  // what goes to or from one rank has trees for each root
    for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
      const Verified* const trees = read->made(collective, kTrees, root);
      ASSERT_NE(trees, nullptr);
      EXPECT_EQ(trees->program().root, root);
      EXPECT_GE(check_certificate(trees->program(), slow_host_of_four()).efficiency(), 0.97);
      EXPECT_GT(read->rate(collective, "chain", root), 0);
    }
  }
  const std::vector<topo::Wire> nine(kMostRoots + 1, topo::Wire{125e6, {}});
  EXPECT_EQ(KnownNetwork::made_for(topo::star(nine))->made(Collective::broadcast, kTrees),
            nullptr);  // would take long for many
  EXPECT_EQ(refusal([] { KnownNetwork::from_json("[]", "rank 0"); }),
            "rank 0: no network: an object with topology and programs is expected");
}

// Goal: what is left goes by trees of its own, whoever is lost. Oracle: the network that never had the others; its bound, proved from the certificate.
TEST(KnownNetwork, around_lost_members_it_is_what_is_left) {
  const auto whole = KnownNetwork::made_for(slow_host_of_four());
  for (const std::vector<std::uint32_t>& left : std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {0, 2, 3}, {1, 3}, {0, 1, 2, 3}}) {
    const auto rest = whole->around(left);
    topo::Topology never = slow_host_of_four();
    never.hosts.clear(), never.links.clear();
    const auto hosts = static_cast<topo::Node>(left.size());
    for (topo::Node host = 0; host < hosts; ++host) {
      never.hosts.push_back("h" + std::to_string(left[host]));
      never.link_both_ways(host, hosts, left[host] == 3 ? 25e6 : 125e6);
    }
    EXPECT_EQ(rest->topology(), never);
    EXPECT_EQ(rest->to_json(), KnownNetwork::made_for(never)->to_json());
    const Proof proof = check_certificate(rest->made(Collective::all_reduce, kTrees)->program(), never);
    EXPECT_GE(proof.efficiency(), 0.97);
    EXPECT_EQ(KnownNetwork::heard(whole->words_around(left))->to_json(), rest->to_json());
  }
}

// Links change under way: the same programs, to the bit, at other prices; and what is left after a loss is made for the links as they are now.
TEST(KnownNetwork, measured_anew_it_has_the_same_programs_at_the_prices_of_now) {
  const auto before = KnownNetwork::made_for(slow_host_of_four());
  topo::Topology now = slow_host_of_four();
  for (topo::Link& link : now.links) link.rate = link.from == 0 || link.to == 0 ? 10e6 : 125e6;  // the slow one is quick, a quick one slow
  const auto after = before->measured_anew(now);
  EXPECT_EQ(after->topology(), now);
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    const Program& program = before->made(collective, kTrees)->program();
    EXPECT_EQ(to_json(after->made(collective, kTrees)->program()), to_json(program));
    EXPECT_EQ(after->rate(collective, kTrees), even_rate(program, now));
    EXPECT_EQ(after->rate(collective, "ring"), KnownNetwork::made_for(now)->rate(collective, "ring"));
  }
  EXPECT_LT(after->rate(Collective::all_reduce, kTrees), before->rate(Collective::all_reduce, kTrees));
  const std::uint32_t left[] = {0, 1, 3};
  EXPECT_EQ(after->around(left)->to_json(), KnownNetwork::made_for(now)->around(left)->to_json());
  EXPECT_EQ(KnownNetwork::from_json(after->to_json(), "a plan")->to_json(), after->to_json());
}

TEST(KnownNetwork, measured_anew_with_other_neighbours_it_is_refused) {
  const auto before = KnownNetwork::without_trees(network_of({0, 0, 1, 1}, 1e9, 25e6));
  EXPECT_EQ(before->measured_anew(network_of({0, 1, 0, 1}, 1e9, 25e6)), nullptr);
  const auto after = before->measured_anew(network_of({0, 0, 1, 1}, 1e9, 5e6));
  EXPECT_NEAR(after->rate(Collective::all_reduce, kHierarchical), before->rate(Collective::all_reduce, kHierarchical) / 5, 1);
}

TEST(KnownNetwork, around_lost_members_there_may_be_none) {
  topo::Topology line;
  line.name = "a line";
  line.hosts = {"a", "b", "c", "d"};
  for (topo::Node host = 0; host < 3; ++host) line.link_both_ways(host, host + 1, 1e6);
  const auto trees = KnownNetwork::made_for(line), rates = KnownNetwork::without_trees(line);
  for (const auto& whole : {trees, rates}) {
    const std::uint32_t near[] = {0, 1, 2}, apart[] = {0, 1, 3}, one[] = {2};
    EXPECT_EQ(whole->around(near)->ranks(), 3U);
    EXPECT_EQ(whole->around(near)->made(Collective::all_reduce, kTrees) != nullptr, whole == trees);
    EXPECT_EQ(whole->around(apart), nullptr);
    EXPECT_EQ(whole->around(one), nullptr);
    EXPECT_EQ(KnownNetwork::heard(whole->words_around(apart)), nullptr);
  }
}

TEST(KnownNetwork, why_there_is_none_the_others_read_too) {
  std::string told;
  const auto make = [&] { KnownNetwork::made_and_told([] { return KnownNetwork::made_for(topology_for("no.json", 4)); }, [&](const std::string& words) { told = words; }); };
  EXPECT_EQ(refusal(make), "no.json: cannot be read: No such file or directory");
  EXPECT_EQ(refusal([&] { KnownNetwork::from_json(told, "rank 0"); }), "rank 0: no.json: cannot be read: No such file or directory");
}

TEST(KnownNetwork, a_file_has_a_host_for_every_member) {
  const std::string file = testing::TempDir() + "/shoal_known_network.json";
  topo::write_topology(slow_host_of_four(), file);
  EXPECT_EQ(topology_for(file, 4), topo::read_topology(file));
  EXPECT_EQ(refusal([&] { topology_for(file, 3); }),
            file + ": has 4 hosts for 3 members (give it a host for every member, in the order of their ranks)");
}

TEST(KnownNetwork, trees_are_chosen_where_links_differ_and_sizes_matter) {
  LinkModel link{.alpha = 1e-4, .rate = 25e6};
  link.network = KnownNetwork::made_for(slow_host_of_four());
  EXPECT_EQ(choose(Collective::all_reduce, 4, 64e6, link), kTrees);
  EXPECT_NE(choose(Collective::all_reduce, 4, 64, link), kTrees);           // few messages matter more
  EXPECT_NE(choose(Collective::all_reduce, 3, 64e6, link), kTrees);         // a group of other hosts
  EXPECT_NE(choose(Collective::all_reduce, 4, 64e6, link, true), kTrees);   // in rank order only
  EXPECT_EQ(&program_named(Collective::all_reduce, kTrees, 4, 0, link.network.get()).program(), &link.network->made(Collective::all_reduce, kTrees)->program());
  EXPECT_EQ(refusal([&] { program_named(Collective::all_reduce, kTrees, 3, 0, link.network.get()); }),
            "trees: no trees are known for all_reduce of 3 members (say which network this is: SHOAL_TOPOLOGY=FILE, a topology of as many hosts)");
}

}  // namespace
}  // namespace shoal::collective
