// Programs for the form that a network has. Method: generated networks whose hosts are put in another order, so that nobody can count on
// numbers; each program proved, run with whole numbers, and its rate held against the closed form or against the ring that does not know the network.
#include "shoal/collective/forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "shoal/collective/build.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/modes.h"
#include "shoal/core/error.h"
#include "shoal/topo/generate.h"
#include "tests/collective/scripted_group.h"
#include "tests/refusal.h"
#include "tests/topo/random_networks.h"

namespace shoal::collective {
namespace {

using testing::HasSubstr;

double fullest_rate(const Program& program, const topo::Topology& on) { return congestion(program, on).rate; }

topo::Topology chips(std::vector<std::uint32_t> sizes, std::vector<bool> wraps, std::vector<topo::Block> dead = {}) {
  return topo::grid({std::move(sizes), std::move(wraps), {}, std::move(dead)});
}

TEST(Forms, every_form_is_proved_and_adds_up_in_any_order_of_hosts) {
  const topo::Wire wire{1, {}}, line{0.5, {}};
  const std::pair<const char*, topo::Topology> cases[] = {{kTorus, chips({4, 4}, {true, true})},
                                                          {kTorus, chips({2, 3, 4}, {false, true, false})},
                                                          {kTorus, chips({7}, {true})},
                                                          {kTorus, chips({5, 3}, {false, true})},
                                                          {kMeshRing, chips({4, 6}, {false, false})},
                                                          {kMeshRing, chips({6, 6}, {true, true}, {{{2, 2}, {2, 2}}})},
                                                          {kMeshRing, chips({4, 4}, {false, false}, {{{1, 1}, {1, 1}}})},
                                                          {kRowPair, chips({6, 4}, {false, false})},
                                                          {kRowPair, chips({6, 4}, {false, false}, {{{2, 2}, {2, 2}}})},
                                                          {kMultiRing, topo::fat_tree(3, 4, wire, line)},
                                                          {kMultiRing, topo::multi_site(2, 4, wire, line)},
                                                          {kHierarchical, topo::fat_tree(3, 4, wire, line)},
                                                          {kOrderedRing, topo::fat_tree(3, 3, wire, line)},
                                                          {kOrderedRing, chips({3, 3}, {false, false})}};
  for (std::uint32_t seed = 0; seed < std::size(cases); ++seed) {
    const auto& [form, topology] = cases[seed];
    SCOPED_TRACE(std::string(form) + " on " + topology.name);
    const Program program = program_for(topo::in_other_order(topology, seed), Collective::all_reduce, form);
    EXPECT_EQ(program.name, form);
    EXPECT_TRUE(program.certificate);
    expect_runs(program, 509, seed);
  }
}

TEST(Forms, rates_do_not_depend_on_the_order_of_hosts_and_are_those_of_the_closed_forms) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    EXPECT_NEAR(fullest_rate(build_for(topo::in_other_order(chips({8, 8}, {true, true}), seed), kTorus),
                             topo::in_other_order(chips({8, 8}, {true, true}), seed)),
                128 / 63., 1e-9);
    const topo::Topology holed = topo::in_other_order(chips({8, 8}, {false, false}, {{{2, 4}, {2, 2}}}), seed);
    EXPECT_NEAR(fullest_rate(build_for(holed, kMeshRing), holed), 60 / 59., 1e-9);
  }
  // The quick dimension goes first: rows of 10, columns of 1. Its rings carry 2 (3/4) / 2 a direction, the others a fourth of that.
  topo::Topology uneven = chips({4, 4}, {true, true});
  for (topo::Link& link : uneven.links) link.rate = link.from / 4 == link.to / 4 ? 10 : 1;
  EXPECT_NEAR(fullest_rate(build_for(uneven, kTorus), uneven), 1 / (0.75 / 4), 1e-9);
}

TEST(Forms, a_ring_goes_through_a_site_once_and_past_slow_links) {
  const topo::Topology sites = topo::multi_site(2, 4, {1, {}}, {0.2, {}});
  const double best = fullest_rate(ring_all_reduce(8), sites);  // by number, sites one after the other
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const topo::Topology mixed = topo::in_other_order(sites, seed);
    EXPECT_NEAR(fullest_rate(build_for(mixed, kOrderedRing), mixed), best, 1e-9) << seed;
    EXPECT_NEAR(fullest_rate(program_for(mixed, Collective::all_reduce, "ring"), mixed), best, 1e-9) << seed;
  }
  // A line between every two of six, all slow but those of one circuit that no number tells.
  topo::Topology lines;
  for (int host = 0; host < 6; ++host) lines.hosts.push_back("h" + std::to_string(host));
  const std::uint32_t circuit[] = {0, 3, 1, 5, 2, 4};
  for (topo::Node a = 0; a < 6; ++a) {
    for (topo::Node b = 0; b < a; ++b) lines.link_both_ways(a, b, 1);
  }
  for (topo::Link& link : lines.links) {
    for (std::size_t k = 0; k < 6; ++k) {
      const std::uint32_t a = circuit[k], b = circuit[(k + 1) % 6];
      if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) link.rate = 10;
    }
  }
  EXPECT_NEAR(fullest_rate(build_for(lines, kOrderedRing), lines), 2 * 10 * 6 / 10.,
              1e-9);  // both ways: 5/6 of the data a direction
}

TEST(Forms, networks_of_another_form_are_refused_with_the_reason) {
  const std::vector<topo::Wire> wires(4);
  const auto why = [](const topo::Topology& topology, const char* mode) {
    return refusal([&] { program_for(topology, Collective::all_reduce, mode); });
  };
  EXPECT_EQ(why(topo::star(wires), "torus"), "topology star_4: is no grid: it has switches, as s");
  EXPECT_EQ(why(topo::star(wires), "multi-ring"), "topology star_4: has no groups of hosts, each on a switch of its own");
  EXPECT_EQ(why(topo::star(wires), "hierarchical"), "topology star_4: has no groups of hosts, each on a switch of its own");
  EXPECT_EQ(why(chips({4, 4}, {true, true}, {{{0, 0}, {2, 2}}}), "torus"),
            "topology torus_4x4: is a grid of 4 x 4 with dead chips (mesh_ring goes round them)");
  EXPECT_EQ(why(chips({2, 2, 2}, {false, false, false}), "mesh-ring"),
            "topology mesh_2x2x2: is a grid of 2 x 2 x 2: rings round dead chips are for two dimensions");
  EXPECT_EQ(why(chips({3, 4}, {false, false}), "row-pair"), "a mesh of 3 x 4 chips: not an even number of rows and columns");
  topo::Topology uneven = topo::fat_tree(2, 2, {}, {});
  uneven.hosts.insert(uneven.hosts.begin() + 4, "more");
  for (topo::Link& link : uneven.links) link = {link.from + (link.from > 3), link.to + (link.to > 3), link.rate, link.latency};
  uneven.link_both_ways(4, 5, 1);
  EXPECT_THAT(why(uneven, "multi-ring"), HasSubstr("has groups of 3 and of 2 hosts: rings along both need equal ones"));
  EXPECT_THAT(why(topo::star(wires), "rings"), HasSubstr("mode: there is no mode rings for all_reduce"));
}

}  // namespace
}  // namespace shoal::collective
