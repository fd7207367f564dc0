// What is counted of a topology, against networks of which it is known.
#include "shoal/topo/facts.h"

#include <gtest/gtest.h>

#include "shoal/topo/generate.h"

namespace shoal::topo {
namespace {

TEST(Facts, a_fat_trees_uplinks_are_its_necks) {
  const Facts found = facts(fat_tree(4, 4, {8}, {4}));
  EXPECT_EQ(found.diameter, 4u);
  EXPECT_EQ(found.links_by_rate, (std::map<double, std::size_t>{{8, 32}, {4, 8}}));
  EXPECT_EQ(found.components.hosts.size(), 1u);
  ASSERT_EQ(found.necks.size(), 4u);
  for (const Neck& neck : found.necks) {
    EXPECT_EQ(neck.hosts.size(), 4u);
    EXPECT_EQ(neck.inner, 16 + neck.hosts[0] / 4);
    EXPECT_EQ(neck.outer, 20u);
    EXPECT_EQ(neck.out, 4);
    EXPECT_EQ(neck.in, 4);
  }
  EXPECT_TRUE(facts(fat_tree(4, 4, {8}, {32})).necks.empty());  // not oversubscribed
}

TEST(Facts, a_line_between_two_sites_is_the_neck_of_both) {
  const Facts found = facts(multi_site(2, 4, {10}, {2}));
  ASSERT_EQ(found.necks.size(), 2u);
  EXPECT_NE(found.necks[0].hosts, found.necks[1].hosts);
  EXPECT_TRUE(facts(multi_site(3, 4, {10}, {2})).necks.empty());  // three lines in a ring: no single one cuts
}

TEST(Facts, tori_meshes_and_their_diameters) {
  EXPECT_EQ(facts(grid({{8, 8}, {true, true}, {}, {}})).diameter, 8u);
  EXPECT_EQ(facts(grid({{8, 8}, {false, false}, {}, {}})).diameter, 14u);
  EXPECT_EQ(facts(grid({{128, 32}, {false, true}, {}, {}})).diameter, 127u + 16);
  EXPECT_TRUE(facts(grid({{8, 8}, {true, true}, {}, {}})).necks.empty());
  const Facts line = facts(grid({{5}, {false}, {}, {}}));  // every link is a bridge; those with two hosts on the smaller side
  EXPECT_EQ(line.necks.size(), 2u);
}

TEST(Facts, parts_are_told_and_have_no_diameter) {
  const Topology split = grid({{5}, {false}, {}, {{{3}, {1}}}});
  const Facts found = facts(split);
  EXPECT_FALSE(found.diameter);
  EXPECT_EQ(describe(found.components, split), "2 components: 3 hosts (0, 1, 2), 1 host (4)");
}

// Links in one direction only: b is reached and reaches nobody.
TEST(Facts, reaching_has_a_direction) {
  Topology topology;
  topology.hosts = {"a", "b"};
  topology.links = {{0, 1, 1, Nanoseconds(0)}};
  EXPECT_FALSE(facts(topology).diameter);
  EXPECT_EQ(facts(topology).components.hosts.size(), 1u);
  EXPECT_EQ(facts(Topology{}).diameter, std::nullopt);
}

}  // namespace
}  // namespace shoal::topo
