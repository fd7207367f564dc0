// Drawings of programs: what is in them, read back from the SVG. How they look was judged by eye.
#include "shoal/collective/draw.h"

#include <gtest/gtest.h>

#include <functional>

#include "shoal/collective/build.h"
#include "shoal/collective/build_trees.h"
#include "shoal/collective/synthesize.h"
#include "shoal/core/error.h"

namespace shoal::collective {
namespace {

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

// Arrows of a kind, without the legend's.
std::size_t arrows(const std::string& svg, const std::string& kind) { return occurrences(svg, "url(#" + kind + ")\" d=\"M") - occurrences(svg, "url(#" + kind + ")\" d=\"M20.0") - occurrences(svg, "url(#" + kind + ")\" d=\"M180.0"); }

TEST(Draw, a_tree_has_an_arrow_each_way_between_every_two_that_talk) {
  const std::string svg = to_svg(tree_program("trees", Collective::all_reduce, 4, {{0, {0, 0, 1, 1}, {0, 0, 1, 1}, 3}, {2, {1, 2, 2, 2}, {1, 2, 2, 2}, 1}}));
  EXPECT_EQ(svg, to_svg(tree_program("trees", Collective::all_reduce, 4, {{0, {0, 0, 1, 1}, {0, 0, 1, 1}, 3}, {2, {1, 2, 2, 2}, {1, 2, 2, 2}, 1}})));
  EXPECT_EQ(occurrences(svg, "<circle"), 8U);
  EXPECT_EQ(arrows(svg, "up"), 6U);
  EXPECT_EQ(arrows(svg, "down"), 6U);
  EXPECT_NE(svg.find(">chunk 0: 75 %<"), std::string::npos);
  EXPECT_NE(svg.find(">chunk 1: 25 %<"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Draw, a_way_up_that_is_not_the_way_down_has_a_picture_of_its_own) {
  const std::string svg = to_svg(tree_program("trees", Collective::all_reduce, 3, {{0, {0, 0, 1}, {0, 0, 0}, 1}}));
  EXPECT_EQ(occurrences(svg, "<circle"), 6U);
  EXPECT_EQ(arrows(svg, "up"), 2U);
  EXPECT_EQ(arrows(svg, "down"), 2U);
}

TEST(Draw, a_ring_is_one_circle_for_all_chunks) {
  for (const std::uint32_t ranks : {3U, 8U, 60U}) {
    const std::string svg = to_svg(build(Collective::all_reduce, "ring", ranks));
    EXPECT_EQ(occurrences(svg, "<circle"), ranks);
    EXPECT_EQ(arrows(svg, "up"), ranks);
    EXPECT_EQ(arrows(svg, "down"), ranks);
    EXPECT_NE(svg.find("each the whole way round"), std::string::npos);
  }
}

TEST(Draw, every_builder_is_drawn_and_sixteen_chunks_at_most) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                                      Collective::reduce, Collective::gather, Collective::scatter, Collective::all_to_all}) {
    for (const std::string& builder : builder_names(collective)) {
      for (const std::uint32_t ranks : {1U, 2U, 5U, 8U, 20U}) {
        const std::string svg = to_svg(build(collective, builder, ranks, 0));
        EXPECT_LE(occurrences(svg, ">chunk "), 16U) << builder;
        EXPECT_GE(occurrences(svg, "<circle"), ranks) << builder;
        EXPECT_EQ(svg.find("nan"), std::string::npos) << builder;
      }
    }
  }
  EXPECT_NE(to_svg(build(Collective::all_reduce, "direct", 20)).find("and 4 chunks more"), std::string::npos);
}

TEST(Draw, hosts_have_their_names_and_chunks_their_rates) {
  topo::Topology line;
  line.name = "line";
  line.hosts = {"<a>", "b"};
  line.link_both_ways(0, 1, 125e6);
  const Program program = synthesize(line, Collective::all_reduce);
  const std::string svg = to_svg(program, &line);
  EXPECT_NE(svg.find("<title>&lt;a></title>"), std::string::npos);
  EXPECT_NE(svg.find("100 %, 1 Gbit/s"), std::string::npos);
}

TEST(Draw, what_cannot_be_drawn_is_refused) {
  const auto refusal = [](const std::function<void()>& draw) -> std::string {
    try {
      draw();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  topo::Topology line;
  line.name = "line";
  line.hosts = {"a", "b"};
  line.link_both_ways(0, 1, 1);
  EXPECT_EQ(refusal([] { to_svg(build(Collective::all_reduce, "ring", 300)); }), "program ring: 300 ranks; at most 256 are drawn");
  EXPECT_EQ(refusal([&] { to_svg(build(Collective::all_reduce, "ring", 3), &line); }), "line: 2 hosts for a program of 3 ranks");
}

}  // namespace
}  // namespace shoal::collective
