// Drawings: each form lies as it should, whatever is drawn is well-formed, and two runs draw the same.
#include "shoal/topo/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <pugixml.hpp>

#include "shoal/core/error.h"
#include "shoal/topo/generate.h"
#include "shoal/topo/layout.h"

namespace shoal::topo {
namespace {

Topology grid_of(std::vector<std::uint32_t> sizes, bool wraps) {
  const std::vector<bool> all(sizes.size(), wraps);
  return grid({std::move(sizes), all, {}, {}});
}

TEST(Draw, grids_lie_at_their_coordinates) {
  const Topology torus = grid_of({3, 5}, true);
  const Layout made = layout(torus);
  ASSERT_EQ(made.form, Layout::Form::grid);
  for (Node node = 0; node < 15; ++node) {
    EXPECT_EQ(made.at[node].x, node % 5);
    EXPECT_EQ(made.at[node].y, node / 5);
  }
  std::size_t wraps = 0;
  for (const bool wrap : made.wraps) wraps += wrap;
  EXPECT_EQ(wraps, 2u * (3 + 5));
  EXPECT_EQ(layout(grid_of({128, 32}, false)).form, Layout::Form::grid);
  EXPECT_EQ(layout(grid_of({4, 4, 4}, true)).form, Layout::Form::grid);
}

// Every switch is above what hangs on it, and no two hosts share a place.
TEST(Draw, trees_stand_on_their_hosts) {
  const Topology tree = fat_tree(3, 4, {2}, {1});
  const Layout made = layout(tree);
  ASSERT_EQ(made.form, Layout::Form::tree);
  for (const Link& link : tree.links) {
    EXPECT_EQ(link.from<link.to, made.at[link.from].y> made.at[link.to].y);
  }
  for (Node a = 0; a < 12; ++a) {
    for (Node b = 0; b < a; ++b) EXPECT_GE(std::hypot(made.at[a].x - made.at[b].x, made.at[a].y - made.at[b].y), 0.99);
  }
  EXPECT_EQ(layout(multi_site(2, 4, {}, {})).form, Layout::Form::tree);
  EXPECT_EQ(layout(star(std::vector<Wire>(300))).form, Layout::Form::tree);
}

TEST(Draw, the_rest_is_drawn_on_a_ring_or_by_springs) {
  Topology complete;
  for (int i = 0; i < 40; ++i) complete.hosts.push_back("h" + std::to_string(i));
  for (Node a = 0; a < 40; ++a) complete.link_both_ways(a, (a * 7 + 3) % 40 == a ? (a + 1) % 40 : (a * 7 + 3) % 40, 1 + a);
  const Layout made = layout(complete);
  EXPECT_EQ(made.form, Layout::Form::free);
  for (Node a = 0; a < 40; ++a) {
    ASSERT_TRUE(std::isfinite(made.at[a].x) && std::isfinite(made.at[a].y));
    for (Node b = 0; b < a; ++b) EXPECT_GT(std::hypot(made.at[a].x - made.at[b].x, made.at[a].y - made.at[b].y), 0.05);
  }
  EXPECT_EQ(layout(multi_site(3, 2, {}, {})).form, Layout::Form::ring);
  EXPECT_EQ(layout(multi_site(3, 8, {}, {})).form, Layout::Form::free);
}

TEST(Draw, every_drawing_is_xml_with_each_node_once) {
  Topology odd = star(std::vector<Wire>{{1e6}, {2e6}, {3e6}});
  odd.hosts[0] = "a<b & \"c\"\x01";
  odd.name = "</svg>";
  Topology nothing, one;
  one.hosts = {"alone"};
  for (const Topology& topology : {odd, nothing, one, grid_of({4, 4}, true), grid_of({2, 3, 2}, false),
                                   multi_site(3, 8, {}, {}), fat_tree(8, 8, {2}, {1})}) {
    const std::string svg = to_svg(topology);
    EXPECT_EQ(svg, to_svg(topology));
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(svg.c_str())) << svg;
    EXPECT_EQ(document.select_nodes("//circle").size(), topology.hosts.size());
    EXPECT_EQ(document.select_nodes("//rect[@class='switch']").size(), topology.switches.size());
    EXPECT_EQ(svg.find("nan"), std::string::npos);
  }
}

TEST(Draw, the_slowest_lines_stand_out_unless_most_are_so) {
  const auto slow = [](const Topology& topology) {
    pugi::xml_document document;
    document.load_string(to_svg(topology).c_str());
    return document.select_nodes("//path[@class='link slow']").size();
  };
  EXPECT_EQ(slow(fat_tree(4, 4, {8}, {4})), 2u);  // the uplinks as one path, and their row below
  EXPECT_EQ(slow(fat_tree(4, 4, {8}, {16})), 0u);
  EXPECT_EQ(slow(star(std::vector<Wire>{{1}, {1.05}, {1.1}})), 0u);
}

TEST(Draw, what_would_be_a_cloud_is_refused) {
  try {
    to_svg(multi_site(3, 200, {}, {}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "topology: 603 nodes in no regular form: a drawing shows at most 400");
  }
}

}  // namespace
}  // namespace shoal::topo
