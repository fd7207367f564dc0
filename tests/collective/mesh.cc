// Ways round dead chips. Method: random patterns of dead blocks and single chips; what is found is held against the mesh itself: each step a link
// between live neighbours, every live chip on the ring once or hung on it. Oracles: flood fill and brute force.
#include "shoal/collective/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "shoal/collective/build_mesh.h"
#include "shoal/collective/build_rings.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/topo/generate.h"
#include "tests/collective/scripted_group.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

Mesh whole(std::uint32_t rows, std::uint32_t columns) { return {rows, columns, std::vector<bool>(std::size_t{rows} * columns)}; }
void kill(Mesh& mesh, std::uint32_t row, std::uint32_t column, std::uint32_t rows, std::uint32_t columns) {
  for (std::uint32_t r = row; r < std::min(row + rows, mesh.rows); ++r) {
    for (std::uint32_t c = column; c < std::min(column + columns, mesh.columns); ++c) mesh.dead[r * mesh.columns + c] = true;
  }
}
std::uint32_t live(const Mesh& mesh) { return static_cast<std::uint32_t>(std::count(mesh.dead.begin(), mesh.dead.end(), false)); }
bool are_neighbours(const Mesh& mesh, std::uint32_t a, std::uint32_t b) {
  const auto row = [&](std::uint32_t chip) { return static_cast<int>(chip / mesh.columns); };
  const auto column = [&](std::uint32_t chip) { return static_cast<int>(chip % mesh.columns); };
  return std::abs(row(a) - row(b)) + std::abs(column(a) - column(b)) == 1;
}

// Live cells of a grid of `rows` x `columns` in one piece?
bool connected(std::uint32_t rows, std::uint32_t columns, const std::vector<bool>& dead) {
  std::vector<bool> seen = dead;
  std::vector<std::uint32_t> reached;
  const auto reach = [&](std::uint32_t cell) {
    if (!seen[cell]) reached.push_back(cell);
    seen[cell] = true;
  };
  reach(static_cast<std::uint32_t>(std::find(dead.begin(), dead.end(), false) - dead.begin()));
  for (std::size_t k = 0; k < reached.size(); ++k) {
    const std::uint32_t at = reached[k];
    if (at % columns > 0) reach(at - 1);
    if (at % columns + 1 < columns) reach(at + 1);
    if (at >= columns) reach(at - columns);
    if (at / columns + 1 < rows) reach(at + columns);
  }
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

void expect_circuit(const Mesh& mesh, const MeshRing& ring) {
  std::set<std::uint32_t> on(ring.order.begin(), ring.order.end()), all = on;
  ASSERT_EQ(on.size(), ring.order.size()) << "a chip twice";
  for (std::size_t k = 0; k < ring.order.size(); ++k) {
    ASSERT_FALSE(mesh.dead[ring.order[k]]);
    ASSERT_TRUE(are_neighbours(mesh, ring.order[k], ring.order[(k + 1) % ring.order.size()])) << k;
  }
  for (const Hanger& hanger : ring.hangers) {
    ASSERT_FALSE(mesh.dead[hanger.chip]);
    ASSERT_TRUE(on.contains(hanger.host));
    ASSERT_TRUE(all.insert(hanger.chip).second);
  }
  ASSERT_EQ(all.size(), live(mesh));
}

TEST(Mesh, every_pattern_of_dead_blocks_that_leaves_one_piece_has_a_circuit) {
  std::uint32_t met = 0;
  Seconds longest{};  // until a way and its program are there, of 32 x 32 chips; for people
  for (std::uint32_t seed = 0; met < 863; ++seed) {
    const auto words = random_words(5, seed, 0, 0);
    const std::uint32_t sizes[][2] = {{8, 8}, {16, 32}, {32, 32}, {6, 4}, {2, 12}};
    const auto& [rows, columns] = sizes[words[0] % 5];
    Mesh mesh = whole(rows, columns);
    for (std::uint32_t hole = 0; hole <= words[1] % 3; ++hole) {
      const auto at = random_words(5, seed, 1, hole);
      kill(mesh, at[0] % rows / 2 * 2, at[1] % columns / 2 * 2, 2 + 2 * (at[2] % 2), 2 + 2 * (at[3] % 2));
    }
    if (live(mesh) == 0 || !connected(rows, columns, mesh.dead)) continue;
    ++met;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const MeshRing ring = mesh_ring(mesh);
    expect_circuit(mesh, ring);
    ASSERT_THAT(ring.hangers, testing::IsEmpty());
    if (rows != 32) continue;
    const Instant began = steady_now();
    mesh_ring_all_reduce(mesh, live_ranks(mesh));
    longest = std::max(longest, Seconds(steady_now() - began));
  }
  std::cout << "32 x 32 chips: a way round holes and its program in " << 1e3 * longest.count() << " ms at most\n";
}

// All 2^9 patterns of blocks of a 6 x 6 mesh: exactly the connected ones have a circuit of all live chips.
TEST(Mesh, all_patterns_of_nine_blocks) {
  std::uint32_t circuits = 0;
  for (std::uint32_t pattern = 0; pattern < 511; ++pattern) {
    Mesh mesh = whole(6, 6);
    for (std::uint32_t block = 0; block < 9; ++block) {
      if (pattern >> block & 1) kill(mesh, block / 3 * 2, block % 3 * 2, 2, 2);
    }
    if (connected(6, 6, mesh.dead)) {
      ++circuits;
      const MeshRing ring = mesh_ring(mesh);
      expect_circuit(mesh, ring);
      EXPECT_EQ(ring.order.size(), live(mesh));
    } else {
      EXPECT_THROW(mesh_ring(mesh), Error);
    }
  }
  EXPECT_EQ(circuits, 218U);  // connected vertex sets of a 3 x 3 grid
}

TEST(Mesh, a_whole_mesh_is_walked_along_its_rows) {
  const MeshRing ring = mesh_ring(whole(4, 8));
  EXPECT_THAT((std::vector(ring.order.begin(), ring.order.begin() + 8)), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// Single dead chips admit no circuit of all others (as many black as white chips would be needed): the rest of their block hangs on.
TEST(Mesh, chips_beside_a_dead_one_hang_on_their_neighbours) {
  Mesh mesh = whole(4, 4);
  mesh.dead[5] = true;
  const MeshRing ring = mesh_ring(mesh);
  expect_circuit(mesh, ring);
  EXPECT_EQ(ring.order.size(), 12U);
  std::map<std::uint32_t, std::uint32_t> host;
  for (const Hanger& hanger : ring.hangers) host[hanger.chip] = hanger.host;
  EXPECT_THAT(host, testing::SizeIs(3));
  EXPECT_TRUE(are_neighbours(mesh, 1, host[1]));  // 0 is behind 1 and 4, which have a neighbour on the ring each
  EXPECT_TRUE(are_neighbours(mesh, 4, host[4]));
  EXPECT_THAT(host[0], testing::AnyOf(host[1], host[4]));
}

TEST(Mesh, random_single_chips_are_borne) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Mesh mesh = whole(8, 10);
    for (std::uint32_t k = 0; k <= seed % 6; ++k) mesh.dead[random_words(6, seed, k, 0)[0] % 80] = true;
    if (!connected(8, 10, mesh.dead)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_circuit(mesh, mesh_ring(mesh));
  }
}

// Brute force: one dead chip leaves 8 black and 7 white ones of a 4 x 4 mesh, and no circuit by any search.
TEST(Mesh, one_dead_chip_admits_no_circuit_at_all) {
  Mesh mesh = whole(4, 4);
  mesh.dead[5] = true;
  std::vector<bool> on(16);
  const std::function<bool(std::uint32_t, std::uint32_t)> search = [&](std::uint32_t at, std::uint32_t count) {
    if (count == 15) return are_neighbours(mesh, at, 0);
    for (std::uint32_t next = 0; next < 16; ++next) {
      if (on[next] || mesh.dead[next] || !are_neighbours(mesh, at, next)) continue;
      on[next] = true;
      if (search(next, count + 1)) return true;
      on[next] = false;
    }
    return false;
  };
  on[0] = true;
  EXPECT_FALSE(search(0, 1));
}

TEST(Mesh, row_pairs_are_rings_of_neighbours_and_broken_ones_share_their_hosts) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Mesh mesh = whole(12, 6);
    const auto words = random_words(7, seed, 0, 0);
    kill(mesh, words[0] % 6 * 2, words[1] % 3 * 2, 2 + 2 * (words[2] % 2), 2);
    if (seed % 3 == 0) mesh.dead[words[3] % 72] = true;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RowPairs pairs = row_pairs(mesh);
    std::set<std::uint32_t> all;
    std::map<std::uint32_t, std::uint32_t> load;
    for (const auto& ring : pairs.rings) {
      ASSERT_EQ(ring.size(), 12U);
      for (std::size_t k = 0; k < ring.size(); ++k) {
        ASSERT_FALSE(mesh.dead[ring[k]]);
        ASSERT_TRUE(all.insert(ring[k]).second);
        ASSERT_TRUE(are_neighbours(mesh, ring[k], ring[(k + 1) % 12]));
      }
      ASSERT_EQ(ring[0] % 12, 0U);  // a pair begins at an even row's first chip: places are the same in every pair
    }
    for (const Hanger& hanger : pairs.hangers) {
      EXPECT_EQ(hanger.chip % 6, hanger.host % 6);
      ++load[hanger.host];
      ASSERT_FALSE(mesh.dead[hanger.chip]);
      ASSERT_TRUE(all.contains(hanger.host));
    }
    for (const Hanger& hanger : pairs.hangers) ASSERT_TRUE(all.insert(hanger.chip).second);
    EXPECT_EQ(all.size(), live(mesh));
    for (const auto& [host, chips] : load) EXPECT_LE(chips, 3U);  // up to three broken pairs, of which two rows each share at least two hosts
  }
}

TEST(Mesh, programs_around_holes_are_proved_and_add_up) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    Mesh mesh = whole(6, 4 + seed % 2 * 2);
    const auto words = random_words(8, seed, 0, 0);
    if (seed % 4 > 0) kill(mesh, words[0] % 3 * 2, words[1] % 2 * 2, 2, 2);
    if (seed % 4 > 1) mesh.dead[words[2] % 8] = true;
    if (!connected(mesh.rows, mesh.columns, mesh.dead)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_runs(mesh_ring_all_reduce(mesh, live_ranks(mesh)), 307, seed);
    if (seed % 4 < 2) expect_runs(row_pair_all_reduce(mesh, live_ranks(mesh)), 307, seed);
  }
}

// A hole of one block: of R live chips each link direction of the ring carries (R-1)/R of the data, whole mesh or not.
TEST(Mesh, a_hole_costs_the_ring_nothing_but_the_chips) {
  const auto busiest = [](const Mesh& mesh) {
    const Program program = mesh_ring_all_reduce(mesh, live_ranks(mesh));
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> load;
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
      for (const Lane& lane : program.lanes[rank]) {
        for (const Loop& loop : lane) {
          for (const Op& op : loop.ops) load[{rank, op.peer}] += op.kind == OpKind::send ? loop.times : 0;
        }
      }
    }
    double most = 0;
    for (const auto& [ends, chunks] : load) most = std::max(most, chunks / program.chunks);
    return most;
  };
  Mesh mesh = whole(32, 32);
  const double before = busiest(mesh);
  EXPECT_DOUBLE_EQ(before, 1023. / 1024);
  kill(mesh, 10, 20, 2, 2);
  EXPECT_NEAR(busiest(mesh), before, 0.02 * before);
}

// Rates of the whole data in units of a link direction, by the routes of the network: research/collective.md 3.3.
TEST(Mesh, programs_go_as_fast_as_their_formulas_on_the_network_itself) {
  const auto network = [](std::uint32_t rows, std::uint32_t columns, bool wraps, std::vector<topo::Block> dead = {}) {
    return topo::grid({{rows, columns}, {wraps, wraps}, {1.0, {}}, std::move(dead)});
  };
  const auto rate = [](const Program& program, const topo::Topology& on) { return congestion(program, on).rate; };
  EXPECT_NEAR(rate(grid_all_reduce({{8}, {8}}, all_passes(2)), network(8, 8, true)), 2.032, 5e-4);   // all four links: nothing is faster
  // Of unequal sides the longer one's links are busier: half of the data goes along it whole, half when it is a fourth already.
  EXPECT_NEAR(rate(grid_all_reduce({{8}, {4}}, all_passes(2)), network(4, 8, true)), 4 / (2 * 7 / 8. * (1 + 1 / 4.)), 1e-9);
  EXPECT_NEAR(rate(grid_all_reduce({{8, false}, {8}}, one_pass(2)), network(8, 8, false)), 8 / 14., 1e-9);  // a folded ring's links have one flow each
  // Behind the rings, along the open dimension, what they left goes once in each direction: a third of the data. The rings carry 2/3 of half of it twice.
  const topo::Topology multipod = topo::grid({{9, 3}, {false, true}, {1.0, {}}, {}});
  EXPECT_NEAR(rate(grid_all_reduce({{3}, {9, false}}, one_pass(2)), multipod), 3 / 4., 1e-9);
  EXPECT_NEAR(rate(grid_all_reduce({{3}, {9, false}}, {{{0, 1}, false}, {{0, 1}, true}}), multipod), 3 / 2., 1e-9);
  EXPECT_NEAR(rate(grid_all_reduce({{9, false}}, one_pass(1)), topo::grid({{9}, {false}, {1.0, {}}, {}})), 1, 1e-9);
  Mesh mesh = whole(8, 8);
  EXPECT_NEAR(rate(mesh_ring_all_reduce(mesh, live_ranks(mesh)), network(8, 8, false)), 1.016, 5e-4);
  // Rings of 16 with 15/16 of the data, whose ends lie on columns that carry four times 3/4 of a 16th.
  EXPECT_NEAR(rate(row_pair_all_reduce(mesh, live_ranks(mesh)), network(8, 8, false)), 1 / (15 / 16. + 4 * 3 / 4. / 16), 1e-9);
  kill(mesh, 2, 4, 2, 2);
  EXPECT_NEAR(rate(mesh_ring_all_reduce(mesh, live_ranks(mesh)), network(8, 8, false, {{{2, 4}, {2, 2}}})), 1.017, 5e-4);
  kill(mesh, 4, 4, 2, 2);
  EXPECT_NEAR(rate(mesh_ring_all_reduce(mesh, live_ranks(mesh)), network(8, 8, false, {{{2, 4}, {4, 2}}})), 1.018, 5e-4);
}

// As large as meshes are. Both ways round are proved as what they are: one member, and one chunk, for all.
TEST(Mesh, a_circuit_round_a_hole_in_32_by_32_is_proved) {
  Mesh mesh = whole(32, 32);
  kill(mesh, 10, 20, 2, 2);
  const Program program = mesh_ring_all_reduce(mesh, live_ranks(mesh));
  EXPECT_EQ(program.ranks, 1020U);
  EXPECT_TRUE(verify(program).in_place());
}

TEST(Mesh, refusals_are_in_words) {
  EXPECT_EQ(refusal([] { mesh_ring(whole(3, 4)); }), "a mesh of 3 x 4 chips: not an even number of rows and columns");
  EXPECT_EQ(refusal([] { mesh_ring({2, 2, {false}}); }), "a mesh of 2 x 2 chips: 1 chips are said to live or not");
  Mesh cut = whole(2, 6);
  kill(cut, 0, 2, 2, 2);
  EXPECT_EQ(refusal([&] { mesh_ring(cut); }), "a mesh of 2 x 6 chips: chip 4 at row 0, column 4 is cut off from others");
  Mesh holed = whole(2, 2);
  holed.dead[0] = true;
  EXPECT_EQ(refusal([&] { mesh_ring(holed); }), "a mesh of 2 x 2 chips: no block of 2 x 2 chips is whole (make a program for its links)");
  EXPECT_EQ(refusal([&] { row_pairs(holed); }), "a mesh of 2 x 2 chips: every pair of rows has a dead chip (take mesh_ring)");
}

}  // namespace
}  // namespace shoal::collective
