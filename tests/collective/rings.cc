// Programs of rings, grids, trees and groups: proved, executed on whole numbers to the exact sums, with the bytes and steps of their formulas.
#include "shoal/collective/build_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "shoal/collective/build_trees.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "tests/collective/scripted_group.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

// For sizes that leave chunks empty and slices that cut them.
void expect_sums_of(const Program& program, const std::vector<std::uint64_t>& totals = {1, 1009}) {
  SCOPED_TRACE(program.name + " of " + std::to_string(program.ranks));
  for (const std::uint64_t total : totals) expect_runs(program, total, program.ranks + total);
}

// [rank]: chunks it sends, and to whom how many.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> chunks_between(const Program& program) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sent;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (const Lane& lane : program.lanes[rank]) {
      for (const Loop& loop : lane) {
        for (const Op& op : loop.ops) {
          if (op.kind == OpKind::send) sent[{rank, op.peer}] += loop.times;
        }
      }
    }
  }
  return sent;
}
std::uint64_t sent_by(const Program& program, std::uint32_t rank) {
  std::uint64_t sum = 0;
  for (const auto& [ends, chunks] : chunks_between(program)) sum += ends.first == rank ? chunks : 0;
  return sum;
}

// Messages of equal chunks that follow each other on the longest way through the program, where a member sends to one neighbour one at a
// time, and any number of neighbours at once.
std::uint64_t steps(const Program& program) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<std::uint64_t>> arrived;  // stream: when each chunk is there
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> free;                                 // link: from when on
  struct At { std::size_t loop = 0; std::uint32_t iteration = 0; };
  std::vector<std::vector<At>> at(program.ranks);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> done;    // (rank, lane, op, iteration)
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> taken;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) at[rank].resize(program.lanes[rank].size());
  std::uint64_t last = 0;
  for (std::uint64_t now = 0, idle = 0; idle < 2; ++now) {
    bool moved = true, any = false;
    while (moved) {
      moved = false;
      for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
        for (std::uint32_t l = 0; l < program.lanes[rank].size(); ++l) {
          At& here = at[rank][l];
          const Lane& lane = program.lanes[rank][l];
          if (here.loop == lane.size()) continue;
          std::uint32_t number = 0;
          for (std::size_t k = 0; k < here.loop; ++k) number += static_cast<std::uint32_t>(lane[k].ops.size());
          const Op& op = lane[here.loop].ops[0];  // builders write a loop an op
          bool ready = true;
          for (const After& wait : op.after) {
            const std::int64_t iteration = std::int64_t{here.iteration} + wait.shift;
            const auto found = done.find({rank, wait.lane, wait.op, static_cast<std::uint32_t>(iteration)});
            ready = ready && (iteration < 0 || (found != done.end() && found->second <= now));
          }
          std::uint64_t end = now;
          if (op.kind == OpKind::send) {
            ready = ready && free[{rank, op.peer}] <= now;
            if (!ready) continue;
            end = free[{rank, op.peer}] = now + 1;
            arrived[{rank, l, op.peer}].push_back(end);
          } else if (op.kind != OpKind::copy && op.kind != OpKind::fold) {
            auto& next = taken[{op.peer, op.peer_lane, rank}];
            const auto& stream = arrived[{op.peer, op.peer_lane, rank}];
            if (!ready || next >= stream.size() || stream[next] > now) continue;
            ++next;
          }
          if (!ready) continue;
          done[{rank, l, number, here.iteration}] = end;
          last = std::max(last, end);
          if (++here.iteration == lane[here.loop].times) here = {here.loop + 1, 0};
          moved = any = true;
        }
      }
    }
    idle = any ? 0 : idle + 1;
  }
  return last;
}

std::vector<std::uint32_t> counted(std::uint32_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

TEST(Rings, programs_by_name_add_up_for_1_to_64_members) {
  for (const char* name : {"ring", "swing", "grid", "double_binary_tree", "halving_doubling"}) {
    for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 12U, 15U, 16U, 17U, 31U, 33U, 49U, 64U}) {
      expect_sums_of(build(Collective::all_reduce, name, ranks), ranks > 16 ? std::vector<std::uint64_t>{67} : std::vector<std::uint64_t>{1, 1009});
    }
  }
}

TEST(Rings, in_any_order_and_both_ways_links_carry_the_least) {
  for (std::uint32_t ranks = 2; ranks <= 9; ++ranks) {
    std::vector<std::uint32_t> order = counted(ranks);
    for (std::uint32_t k = 0; k < ranks; ++k) std::swap(order[k], order[random_words(3, ranks, k, 0)[0] % ranks]);
    expect_sums_of(ring_all_reduce(order));
    const Program both = ring_all_reduce(order, true);
    expect_sums_of(both);
    if (ranks == 2) continue;
    const auto between = chunks_between(both);
    EXPECT_EQ(between.size(), 2 * ranks);
    for (const auto& [ends, chunks] : between) EXPECT_EQ(chunks, 2 * (ranks - 1)) << "half of the data is " << ranks << " chunks";
  }
  EXPECT_EQ(verify(ring_all_reduce(counted(5))).program().order, AddOrder::rotated);
  EXPECT_EQ(steps(ring_all_reduce(counted(5))), 2 * 4U);
}

TEST(Rings, grids_of_any_factors_add_up) {
  for (const std::vector<std::uint32_t>& sizes : std::vector<std::vector<std::uint32_t>>{{2, 3}, {3, 2}, {1, 5}, {4, 4}, {2, 2, 2}, {3, 2, 4}, {5, 1, 3}, {7, 9}, {2, 3, 2, 2}}) {
    for (std::uint32_t open = 0; open < 1U << sizes.size(); ++open) {  // a bit a dimension
      SCOPED_TRACE(open);
      std::vector<Dimension> dimensions;
      for (const std::uint32_t size : sizes) dimensions.push_back({size, (open >> dimensions.size() & 1) == 0});
      expect_sums_of(grid_all_reduce(dimensions, one_pass(sizes.size())), {211});
      expect_sums_of(grid_all_reduce(dimensions, all_passes(sizes.size())), {211});
      std::vector<std::uint32_t> order = counted(static_cast<std::uint32_t>(sizes.size()));
      std::reverse(order.begin(), order.end());
      expect_sums_of(grid_all_reduce(dimensions, {{order, true}}), {211});
    }
  }
}

// Bytes 2(N-1)/N in all, of which dimension d has 2(p_d - 1) / (p_1 ... p_d).
TEST(Rings, each_dimension_of_a_grid_carries_what_the_formula_says) {
  const Program program = grid_all_reduce({{4}, {3}, {2}}, one_pass(3));
  for (std::uint32_t rank = 0; rank < 24; ++rank) EXPECT_EQ(sent_by(program, rank), 2 * 23U);
  const auto between = chunks_between(program);
  EXPECT_EQ(between.at({0, 1}), 2 * 3 * 24 / 4U);
  EXPECT_EQ(between.at({0, 4}), 2 * 2 * 24 / 12U);
  EXPECT_EQ(between.at({0, 12}), 2 * 1 * 24 / 24U);
  EXPECT_EQ(between.size(), 24 * 3U);
}

// To the middle and back at once: each link direction carries all of the data, once, which is the least, and a shard is there after p-1 hops, p where p is even.
TEST(Rings, along_a_line_members_meet_in_the_middle) {
  for (std::uint32_t size = 3; size <= 10; ++size) {
    SCOPED_TRACE(size);
    for (const bool backward : {false, true}) {
      const Program line = grid_all_reduce({{size, false}}, {{{0}, backward}});
      expect_sums_of(line);
      EXPECT_EQ(verify(line).program().order, AddOrder::tree);
      const auto between = chunks_between(line);
      EXPECT_EQ(between.size(), 2 * (size - 1));
      for (const auto& [ends, chunks] : between) {
        EXPECT_EQ(std::max(ends.first, ends.second) - std::min(ends.first, ends.second), 1U);
        EXPECT_EQ(chunks, line.chunks);
      }
      EXPECT_EQ(steps(line), size + size / 2 * 2 - 1);  // shards follow each other
    }
  }
  expect_sums_of(grid_all_reduce({{1, false}}, one_pass(1)));
  expect_sums_of(grid_all_reduce({{2, false}}, one_pass(1)));
}

// Rings first, then lines with what these left: a third of the data.
TEST(Rings, an_open_dimension_behind_a_ring_is_a_line) {
  const Program program = grid_all_reduce({{5, false}, {3}}, {{{1, 0}, false}, {{1, 0}, true}});
  expect_sums_of(program, {0, 1, 211});
  for (const auto& [ends, chunks] : chunks_between(program)) {
    const bool along = ends.first / 5 == ends.second / 5;
    EXPECT_EQ(chunks, along ? program.chunks / 3 : program.chunks / 2 * 2 * 2 / 3) << ends.first << " to " << ends.second;
    if (along) {
      EXPECT_EQ(std::max(ends.first, ends.second) - std::min(ends.first, ends.second), 1U);
    }
  }
}

// S (N-1) / (2dB) x 2 on 2d links of a member, each direction alike.
TEST(Rings, passes_of_a_torus_load_every_link_direction_alike) {
  for (const std::uint32_t side : {3U, 4U}) {
    const Program program = grid_all_reduce({{side}, {side}}, all_passes(2));
    const auto between = chunks_between(program);
    const std::uint32_t ranks = side * side;
    EXPECT_EQ(between.size(), 4 * ranks);  // chunks are a 4 N-th of the data
    for (const auto& [ends, chunks] : between) EXPECT_EQ(chunks, 2 * (ranks - 1));
    expect_sums_of(program, {500});
  }
}

TEST(Rings, a_mesh_is_crossed_by_rings_with_steps_of_two_links_at_most) {
  for (std::uint32_t size = 1; size <= 9; ++size) {
    std::vector<std::uint32_t> over(size + 1, 0), seen;
    for (std::uint32_t place = 0; place < size; ++place) {
      const std::uint32_t from = folded(place, size), to = folded((place + 1) % size, size);
      seen.push_back(from);
      EXPECT_EQ(unfolded(from, size), place);
      EXPECT_LE(std::max(from, to) - std::min(from, to), 2U);
      for (std::uint32_t link = from; link < to; ++link) ++over[link];  // to the right
    }
    EXPECT_THAT(over, testing::Each(testing::Le(1U)));
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, counted(size));
  }
}

TEST(Rings, a_grid_takes_the_sum_of_its_dimensions_steps) {
  // Chunks that follow each other on one link take turns: p-1 steps of size/p chunks each.
  EXPECT_EQ(steps(grid_all_reduce({{3}, {1}}, one_pass(2))), 2 * 2U);
  EXPECT_EQ(steps(grid_all_reduce({{2}, {2}}, one_pass(2))), 2 * (2 + 1U));
  EXPECT_EQ(steps(ring_all_reduce(counted(16))), 30U);
  EXPECT_EQ(steps(grid_all_reduce({{4}, {4}}, one_pass(2))), 30U);                 // the bytes of a ring: 2 (N-1) chunks
  EXPECT_LE(steps(grid_all_reduce({{4}, {4}}, all_passes(2))), 30U + 2);           // of a quarter of the size each
}

TEST(Rings, members_beside_the_ring_hand_over_and_hear) {
  const std::vector<Rings> all{
      {{1}, {0}, {{1, 0}}, one_pass(1)},
      {{1}, {2}, {{1, 2}, {0, 2}, {3, 2}}, all_passes(1)},
      {{3}, {0, 2, 4}, {{1, 0}, {3, 0}, {5, 4}}, one_pass(1)},
      {{4}, {6, 2, 4, 0}, {{1, 0}, {3, 6}, {5, 6}}, all_passes(1)},
      {{3, 2}, {0, 1, 2, 3, 4, 6}, {{5, 6}}, all_passes(2)},
  };
  for (const Rings& rings : all) expect_sums_of(ring_program("beside", rings), {0, 1, 331});
}

TEST(Rings, two_trees_are_low_and_share_the_work) {
  for (std::uint32_t ranks = 2; ranks <= 130; ++ranks) {
    SCOPED_TRACE(ranks);
    const auto trees = double_binary_trees(ranks);
    std::vector<std::uint32_t> children(ranks, 0), inner(ranks, 0);
    std::uint32_t height = 0;
    for (const DataTree& tree : trees) {
      std::vector<std::uint32_t> here(ranks, 0);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::uint32_t above = 0;
        for (std::uint32_t at = rank; at != tree.root; at = tree.up[at]) ASSERT_LE(++above, ranks);
        height = std::max(height, above);
        if (rank != tree.root) ++here[tree.up[rank]];
      }
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_LE(here[rank], 2U);
        inner[rank] += here[rank] > 0;
      }
    }
    EXPECT_LE(height, std::ceil(std::log2(ranks)));
    EXPECT_LE(std::count(inner.begin(), inner.end(), 2U), ranks % 2 == 0 ? 0 : 1);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_LE(sent_by(double_binary_tree_all_reduce(ranks), rank), 4U);  // 2 S
    if (ranks > 20) ranks += 9;
  }
}

TEST(Rings, swing_meets_at_1_1_3_5_11_places_and_sends_the_least) {
  const Program program = swing_all_reduce(32);
  std::vector<std::uint32_t> met;
  for (const Loop& loop : program.lanes[0][0]) {
    if (met.empty() || met.back() != loop.ops[0].peer) met.push_back(loop.ops[0].peer);
  }
  ASSERT_GE(met.size(), 5U);
  EXPECT_THAT((std::vector(met.begin(), met.begin() + 5)), testing::ElementsAre(1, 32 - 1, 3, 32 - 5, 11));
  for (std::uint32_t rank = 0; rank < 32; ++rank) EXPECT_EQ(sent_by(program, rank), 2 * 31U);
}

TEST(Rings, groups_of_any_sizes_add_up_and_cross_once) {
  for (const std::vector<std::uint32_t>& groups : std::vector<std::vector<std::uint32_t>>{{1}, {3}, {3, 5}, {1, 4}, {2, 2, 2}, {1, 1, 1}, {5, 1, 3}}) {
    std::vector<std::uint32_t> group_of;
    for (std::uint32_t group = 0; group < groups.size(); ++group) group_of.insert(group_of.end(), groups[group], group);
    expect_sums_of(hierarchical_all_reduce(group_of), {0, 211});
    std::reverse(group_of.begin(), group_of.end());
    expect_sums_of(hierarchical_all_reduce(group_of), {0, 211});
  }
  expect_sums_of(hierarchical_all_reduce({0, 1, 2, 0, 1, 0}), {0, 211});
  // What leaves a group of 4 + 4 is the vector once in each direction: its sum, or the whole result.
  const Program program = hierarchical_all_reduce({0, 0, 0, 0, 1, 1, 1, 1});
  std::uint64_t across = 0;
  for (const auto& [ends, chunks] : chunks_between(program)) across += ends.first < 4 && ends.second >= 4 ? chunks : 0;
  EXPECT_EQ(across, program.chunks);
}

TEST(Rings, large_programs_are_small_as_data_and_proved) {
  const auto ops = [](const Program& program, std::uint32_t rank) {
    std::size_t count = 0;
    for (const Lane& lane : program.lanes[rank]) {
      for (const Loop& loop : lane) count += loop.ops.size();
    }
    return count;
  };
  EXPECT_LE(ops(grid_all_reduce({{64}, {64}}, all_passes(2)), 2077), 100U);
  EXPECT_LE(ops(grid_all_reduce({{16}, {16}, {16}}, all_passes(3)), 2077), 260U);
  const Program ring = ring_all_reduce(counted(300));  // more than 2^18 ops when unrolled
  EXPECT_TRUE(verify(ring).in_place());
  EXPECT_TRUE(verify(grid_all_reduce({{12}, {12}}, all_passes(2))).in_place());
  EXPECT_TRUE(verify(double_binary_tree_all_reduce(4096)).in_place());
}

TEST(Rings, refusals_are_in_words) {
  EXPECT_EQ(refusal([] { ring_all_reduce(std::vector<std::uint32_t>{0, 2, 2}); }), "ring: rank 1 of 3 is missing");
  EXPECT_EQ(refusal([] { ring_all_reduce(std::vector<std::uint32_t>{0, 0, 1}); }), "ring: rank 0 of 3 is there twice");
  EXPECT_EQ(refusal([] { grid_all_reduce({{65}, {64}}, one_pass(2)); }), "grid: more than 4096 members");
  EXPECT_EQ(refusal([] { grid_all_reduce({{2}, {2}}, one_pass(1)); }), "grid: a pass that is no order of 2 dimensions");
  EXPECT_EQ(refusal([] { grid_all_reduce({{2}, {2}}, {}); }), "grid: no pass");
  EXPECT_EQ(refusal([] { grid_all_reduce({{0}, {2}}, one_pass(2)); }), "grid: 0 members; a program has 1 to 4096");
  EXPECT_EQ(refusal([] { ring_program("odd", {{2}, {0, 1}, {{2, 3}}, one_pass(1)}); }), "odd: rank 2 hangs on rank 3, which is in no ring");
  EXPECT_EQ(refusal([] { ring_program("odd", {{3}, {0, 1}, {}, one_pass(1)}); }), "odd: 2 members at 3 places");
  EXPECT_EQ(refusal([] { hierarchical_all_reduce({0, 2, 2}); }), "hierarchical: a group without members");
  EXPECT_EQ(refusal([] { hierarchical_all_reduce({0, 2}); }), "hierarchical: group 2 of 2 members");
  EXPECT_EQ(refusal([] { hierarchical_all_reduce({}); }), "hierarchical: no group");
}

}  // namespace
}  // namespace shoal::collective
