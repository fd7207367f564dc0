// Grids known again. Oracle: the generator that made them; files of other makers, whose hosts come in another order.
#include "shoal/topo/grid_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/topo/generate.h"
#include "tests/refusal.h"

namespace shoal::topo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The same network with its hosts in another order.
Topology in_other_order(const Topology& topology, std::uint32_t seed, bool keep_names) {
  std::vector<Node> to(topology.hosts.size());
  std::iota(to.begin(), to.end(), Node{0});
  for (std::size_t k = to.size(); k > 1; --k)
    std::swap(to[k - 1], to[random_words(31, seed, static_cast<std::uint32_t>(k), 0)[0] % k]);
  Topology made = topology;
  for (Node host = 0; host < to.size(); ++host)
    made.hosts[to[host]] = keep_names ? topology.hosts[host] : "chip" + std::to_string(host);
  for (Link& link : made.links) link = {to[link.from], to[link.to], link.rate, link.latency};
  return made;
}

TEST(GridForm, what_was_generated_is_known_again_in_any_order_of_hosts) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const auto words = random_words(30, seed, 0, 0);
    Grid grid;
    for (std::uint32_t d = 0; d <= words[0] % 4; ++d) {
      const auto more = random_words(30, seed, 1, d);
      grid.sizes.push_back(2 + more[0] % 4);
      grid.wraps.push_back(more[1] % 2 == 1 && grid.sizes.back() > 2);
    }
    // A dead chip that is the last in no row, so that all sizes can be seen.
    const bool dead = words[1] % 2 == 1 && grid.sizes.size() > 1;
    if (dead)
      grid.dead.push_back({std::vector<std::uint32_t>(grid.sizes.size(), 0), std::vector<std::uint32_t>(grid.sizes.size(), 1)});
    const Topology made = topo::grid(grid), other = in_other_order(made, seed, true);
    SCOPED_TRACE(made.description + ", seed " + std::to_string(seed));
    const GridForm form = grid_form(other);
    ASSERT_EQ(form.sizes, grid.sizes);
    EXPECT_EQ(form.wraps, grid.wraps);
    EXPECT_EQ(form.is_whole(), !dead);
    std::size_t next = 0;  // of the live chips, row by row as the generator numbers them
    for (const Node chip : form.chips) {
      if (chip != GridForm::kDead) {
        ASSERT_EQ(other.hosts[chip], made.hosts[next++]);
      }
    }
    EXPECT_EQ(next, made.hosts.size());
  }
}

TEST(GridForm, hosts_of_other_names_count_row_by_row) {
  Topology torus = grid({{4, 6}, {true, false}, {}, {}});
  for (std::size_t host = 0; host < torus.hosts.size(); ++host) torus.hosts[host] = "tpu-" + std::to_string(host);
  const GridForm form = grid_form(torus);
  EXPECT_THAT(form.sizes, ElementsAre(4, 6));
  EXPECT_THAT(form.wraps, ElementsAre(true, false));
  EXPECT_EQ(form.chips[7], 7U);
}

TEST(GridForm, files_of_the_data_set_are_known) {
  const auto form = [](const char* name) {
    return grid_form(read_topology(std::string(SHOAL_TOPO_DATA "/") + name + ".json"));
  };
  EXPECT_THAT(form("torus_8x8").wraps, ElementsAre(true, true));
  EXPECT_THAT(form("mesh_8x8").wraps, ElementsAre(false, false));
  EXPECT_TRUE(form("mesh_8x8").is_whole());
  const GridForm holed = form("mesh_8x8_hole2x2");
  EXPECT_THAT(holed.sizes, ElementsAre(8, 8));
  EXPECT_EQ(holed.chips[2 * 8 + 2], GridForm::kDead);
  EXPECT_EQ(std::ranges::count(form("torus_8x8_hole2x2").chips, GridForm::kDead), 4);
}

TEST(GridForm, others_are_told_why_they_are_none) {
  const auto why = [](const Topology& topology) { return refusal([&] { grid_form(topology); }); };
  const std::vector<Wire> wires(4);
  EXPECT_EQ(why(star(wires)), "topology star_4: is no grid: it has switches, as s");
  Topology mesh = grid({{3, 3}, {false, false}, {}, {}});
  mesh.links.pop_back();
  EXPECT_EQ(why(mesh), "topology mesh_3x3: is no grid: no link leads from 2_2 to 2_1");
  mesh.link_both_ways(0, 4, 1);
  EXPECT_EQ(why(mesh), "topology mesh_3x3: is no grid: 0_0 and 1_1 are linked, but are no neighbours");
  for (std::string& host : mesh.hosts) host = "h" + host;
  EXPECT_THAT(
      why(mesh),
      HasSubstr("is no grid: neither names nor numbers of its hosts are coordinates of neighbours that its links join"));
  EXPECT_EQ(why({"one", "", {"a"}, {}, {}, false}), "topology one: is no grid: it has fewer than two hosts");
}

}  // namespace
}  // namespace shoal::topo
