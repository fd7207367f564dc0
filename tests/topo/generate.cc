// Generated networks: equal to the published files, link by link, and the refusals.
#include "shoal/topo/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "shoal/core/error.h"
#include "tests/refusal.h"

namespace shoal::topo {
namespace {

using namespace std::chrono_literals;
using Named = std::tuple<std::string, std::string, double, std::int64_t>;

std::vector<Named> links_by_name(const Topology& topology) {
  std::vector<Named> named;
  for (const Link& link : topology.links) {
    named.emplace_back(topology.node_name(link.from), topology.node_name(link.to), link.rate, link.latency.count());
  }
  std::sort(named.begin(), named.end());
  return named;
}

Topology published(const std::string& name) { return read_topology(std::filesystem::path(SHOAL_TOPO_DATA) / (name + ".json")); }

// The same hosts, switches and links; in what order a file lists them says nothing.
void expect_same_graph(const Topology& made, const Topology& file) {
  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_EQ(sorted(made.hosts), sorted(file.hosts));
  EXPECT_EQ(sorted(made.switches), sorted(file.switches));
  EXPECT_EQ(links_by_name(made), links_by_name(file));
}

constexpr double kGigabit = 125e6;

TEST(Generate, stars_are_the_published_ones) {
  expect_same_graph(star(std::vector<Wire>(8, Wire{kGigabit})), published("eth_star_8x1g"));
  std::vector<Wire> wires(4, Wire{kGigabit});
  wires[3].rate = 0.2 * kGigabit;
  expect_same_graph(star(wires), published("eth_3x1g_1x200m"));
  wires.assign(8, Wire{kGigabit});
  std::fill_n(wires.begin(), 4, Wire{10 * kGigabit});
  expect_same_graph(star(wires), published("eth_mixed_4x10g_4x1g"));
}

TEST(Generate, fat_trees_and_sites_are_the_published_ones) {
  expect_same_graph(fat_tree(4, 4, {kGigabit}, {2 * kGigabit}), published("fattree_4x4_2to1"));
  expect_same_graph(fat_tree(4, 4, {kGigabit}, {0.5 * kGigabit}), published("fattree_4x4_8to1"));
  expect_same_graph(multi_site(2, 4, {kGigabit, 50us}, {0.2 * kGigabit, 20ms}), published("wan_2x4_200m"));
}

TEST(Generate, grids_with_and_without_holes_are_the_published_ones) {
  const Grid mesh{{8, 8}, {false, false}, {}, {}}, torus{{8, 8}, {true, true}, {}, {}};
  const auto with_hole = [](Grid grid, std::vector<std::uint32_t> extent) {
    grid.dead = {{{2, 2}, std::move(extent)}};
    return grid;
  };
  expect_same_graph(grid(mesh), published("mesh_8x8"));
  expect_same_graph(grid(torus), published("torus_8x8"));
  expect_same_graph(grid(with_hole(mesh, {2, 2})), published("mesh_8x8_hole2x2"));
  expect_same_graph(grid(with_hole(mesh, {4, 2})), published("mesh_8x8_hole4x2"));
  expect_same_graph(grid(with_hole(torus, {2, 2})), published("torus_8x8_hole2x2"));
}

// 128 x 32 chips, of which only the columns of 32 close: 128 rings of 32 links and 32 chains of 127.
TEST(Generate, the_multipod_wraps_in_one_dimension_only) {
  const Topology multipod = grid({{128, 32}, {false, true}, {70e9}, {}});
  EXPECT_EQ(multipod.hosts.size(), 4096u);
  EXPECT_EQ(multipod.links.size(), 2u * (128 * 32 + 32 * 127));
}

// Every live chip has one link each way for each live neighbour: counted by looking at all pairs of names.
TEST(Generate, any_dimensions_any_dead_chips) {
  const Topology made = grid({{3, 2, 4}, {true, true, false}, {}, {{{1, 0, 1}, {1, 1, 1}}, {{0, 0, 0}, {1, 2, 1}}}});
  EXPECT_EQ(made.hosts.size(), 24u - 3);
  EXPECT_EQ(std::count(made.hosts.begin(), made.hosts.end(), "1_0_1"), 0);
  const auto apart = [](int a, int b, int size, bool wraps) {
    const int straight = std::abs(a - b);
    return wraps ? std::min(straight, size - straight) : straight;
  };
  std::vector<Named> expected;
  for (const auto& a : made.hosts) {
    for (const auto& b : made.hosts) {
      if (apart(a[0], b[0], 3, true) + apart(a[2], b[2], 2, true) + apart(a[4], b[4], 4, false) == 1)
        expected.emplace_back(a, b, 1, 0);
    }
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(links_by_name(made), expected);
}

TEST(Generate, what_no_network_has_is_refused_in_one_line) {
  EXPECT_EQ(refusal([] { star({}); }), "star: a count is 0");
  EXPECT_EQ(refusal([] { star(std::vector<Wire>(2, Wire{-1})); }), "star: a rate must be a positive number");
  EXPECT_EQ(refusal([] { fat_tree(1 << 12, 1 << 12, {}, {}); }), "fat tree: more than 65536 hosts");
  EXPECT_EQ(refusal([] { multi_site(60000, 1, {}, {}); }), "multi-site: more than 65536 hosts and switches or 1048576 links");
  EXPECT_EQ(refusal([] { grid({{}, {}, {}, {}}); }), "grid: has 1 to 8 dimensions");
  EXPECT_EQ(refusal([] { grid({{4, 4}, {true}, {}, {}}); }), "grid: 2 dimensions, but 1 say whether they wrap");
  EXPECT_EQ(refusal([] { grid({{4, 4}, {true, true}, {}, {{{3, 0}, {2, 1}}}}); }),
            "grid: the dead block at 3,0 reaches beyond the grid of 4x4");
  EXPECT_EQ(refusal([] { grid({{2}, {false}, {}, {{{0}, {2}}}}); }), "grid: no chip lives");
}

}  // namespace
}  // namespace shoal::topo
