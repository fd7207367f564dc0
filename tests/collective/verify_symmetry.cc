// Proofs by a few members that stand for all. What they say of sound programs is what the long proof says; and one member, pass or wait that is not like the
// others is seen, wherever it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"
#include "shoal/collective/build_rings.h"
#include "shoal/collective/symmetry.h"
#include "shoal/collective/verify.h"
#include "tests/collective/in_few.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

std::vector<std::uint32_t> numbers_below(std::uint32_t count) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t k = 0; k < count; ++k) numbers.push_back(k);
  return numbers;
}

struct Sound {
  Program program;
  std::size_t parts;
};
std::vector<Sound> sound_programs() {
  std::vector<Sound> all;
  all.push_back({ring_all_reduce(7), 1});
  all.push_back({ring_all_reduce({3, 0, 4, 2, 1}, true), 2});
  all.push_back({grid_all_reduce({{3}, {4}}, one_pass(2)), 1});
  all.push_back({grid_all_reduce({{4}, {3}}, all_passes(2)), 4});
  all.push_back({grid_all_reduce({{4, false}, {2}, {3}}, all_passes(3)), 6});
  return all;
}

TEST(VerifySymmetry, passes_are_parts_and_every_part_is_proved_by_a_few) {
  for (const auto& [program, parts] : sound_programs()) {
    SCOPED_TRACE(program.name + " of " + std::to_string(program.ranks));
    const LaidOut all = lay_out(program);
    const std::vector<ProgramPart> found = parts_of(all);
    EXPECT_EQ(found.size(), parts);
    std::size_t chunks = 0, lanes = 0;
    for (const ProgramPart& part : found) chunks += part.chunks.size(), lanes += part.rows.size();
    EXPECT_EQ(chunks, program.chunks);
    EXPECT_EQ(lanes, all.rows());
    bool in_place = true;
    each_part(all, 0, [&](const ProgramPart& part, const Program& alone) {
      const auto proved = proved_by_symmetry(alone, part.chunks);
      ASSERT_TRUE(proved);
      in_place = in_place && *proved;
    });
    EXPECT_EQ(in_place, verify(program).in_place());
  }
}

// All pairs of ranks have nothing to do with each other, and a visit looks at all lanes: so few visits are made, and of many ranks, too, it is a matter of a second.
TEST(VerifySymmetry, small_parts_are_looked_at_together) {
  constexpr std::uint32_t kEnough = 10;
  const Program program = build(Collective::all_to_all, "direct", 7);
  const LaidOut all = lay_out(program);
  std::size_t visits = 0, lanes = 0;
  std::vector<std::uint32_t> chunks;
  each_part(all, kEnough, [&](const ProgramPart& part, const Program&) {
    ++visits;
    EXPECT_LE(part.instances, kEnough);
    EXPECT_TRUE(std::ranges::is_sorted(part.chunks));
    lanes += part.rows.size();
    chunks.insert(chunks.end(), part.chunks.begin(), part.chunks.end());
  });
  std::ranges::sort(chunks);
  std::vector<std::uint32_t> every(program.chunks);
  std::iota(every.begin(), every.end(), 0U);
  EXPECT_EQ(chunks, every);
  EXPECT_EQ(lanes, all.rows());
  EXPECT_GT(visits, 1U);
  EXPECT_LT(visits, parts_of(all).size() / 3);
  EXPECT_TRUE(verify(build(Collective::all_reduce, "direct", 257)).in_place());
}

TEST(VerifySymmetry, of_a_ring_one_stands_for_all_and_of_a_pass_one_of_each_line) {
  const Program ring = ring_all_reduce(6), grid = grid_all_reduce({{3}, {4}}, one_pass(2));
  const Orbits of_ring = orbits_of(lay_out(ring)), of_grid = orbits_of(lay_out(grid));
  EXPECT_EQ(of_ring.ranks, std::vector<std::uint32_t>(6, 0));
  EXPECT_EQ(of_ring.chunks, std::vector<std::uint32_t>(6, 0));
  EXPECT_EQ(of_grid.ranks, (std::vector<std::uint32_t>{0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9}));
}

// A sum that goes from each to the next and is whole where it began is a ring turned round only if whoever is next is next in the order of addition, too.
TEST(VerifySymmetry, an_order_by_ranks_is_turned_and_not_exchanged) {
  Program program = ring_all_reduce({0, 2, 4, 1, 3});
  EXPECT_TRUE(is_proved_in_few(program));
  program.order = AddOrder::rotated;
  EXPECT_FALSE(is_proved_in_few(program));
}

// A ring iteration by iteration, in which two chunks have each other's numbers: all members do the same, and yet these two are not whole where their owners are.
TEST(VerifySymmetry, what_is_asked_of_an_owner_is_asked_of_every_chunk) {
  const Program ring = ring_all_reduce(5);
  const LaidOut laid = lay_out(ring);
  const auto place = [&](const Iterated& at, std::uint32_t instance) { return instance - laid.row_begin[at.row]; };
  Program flat = with_lanes(ring, [](std::uint32_t, std::uint32_t) { return false; });
  for (const Iterated& at : laid.ops) {
    for (std::uint32_t i = 0; i < at.times; ++i) {
      Op op = *at.op;
      const std::uint32_t chunk = chunk_of(ring, op, i);
      op.chunk = chunk == 1 ? 2 : chunk == 2 ? 1 : chunk;
      op.chunk_step = 0;
      op.after.clear();
      for (const After& wait : at.op->after) {
        const Iterated& other = *laid.waited(at.rank, wait);
        const std::uint32_t instance = LaidOut::instance_of(other, i, wait);
        if (instance != kNone) op.after.push_back({wait.lane, place(other, instance), 0});
      }
      flat.lanes[at.rank][at.lane].push_back({1, {op}});
    }
  }
  EXPECT_NE(shoal::refusal([&] { verify(flat); }).find("is not added in the declared order, rotated from rank 2 on"),
            std::string::npos);
  EXPECT_FALSE(is_proved_in_few(flat));
  flat.order = AddOrder::tree;
  EXPECT_TRUE(is_proved_in_few(flat));
  EXPECT_NO_THROW(verify(flat));
}

// Goal: no defect of one member hides behind another that stands for it. Method: each op of each member of small rings and tori is spoilt in each of several ways, one at a
// time. Expected: what a few prove, the long proof does, too; and every kind is refused somewhere.
TEST(VerifySymmetry, one_op_that_is_not_like_the_others_is_seen_at_every_member) {
  const std::vector<std::function<void(Program&, Op&)>> ways{
      [](Program&, Op& op) { op.after.clear(); },
      [](Program&, Op& op) {
        if (!op.after.empty()) op.after[0].shift -= 1;
      },
      [](Program&, Op& op) {
        if (!op.sources.empty()) op.sources[0] = op.sources[0] == kInput ? kOutput : kInput;
      },
      [](Program& p, Op& op) { op.chunk = (op.chunk + 1) % p.chunks; },
      [](Program& p, Op& op) { op.peer = (op.peer + 1) % p.ranks; },
      [](Program&, Op& op) { op.completes = !op.completes; },
      [](Program&, Op& op) { op.chunk_step = 1; },
      [](Program&, Op& op) { op.after.push_back({1, 1, 0}); },
  };
  std::vector<std::uint32_t> refused(ways.size(), 0);
  for (const Program& sound :
       {ring_all_reduce(5), ring_all_reduce({0, 1, 2, 3}, true), grid_all_reduce({{2}, {3}}, all_passes(2))}) {
    for (std::uint32_t rank = 0; rank < sound.ranks; ++rank) {
      for (std::uint32_t lane = 0; lane < sound.lanes[rank].size(); ++lane) {
        for (std::uint32_t loop = 0; loop < sound.lanes[rank][lane].size(); ++loop) {
          for (std::size_t way = 0; way < ways.size(); ++way) {
            Program spoilt = sound;
            ways[way](spoilt, spoilt.lanes[rank][lane][loop].ops[0]);
            const bool is_right = shoal::refusal([&] { verify(spoilt); }) == "nothing was refused";
            refused[way] += !is_right;
            if (!is_right) {
              EXPECT_FALSE(is_proved_in_few(spoilt))
                  << spoilt.name << ", rank " << rank << ", lane " << lane << ", loop " << loop << ", way " << way;
            }
          }
        }
      }
    }
  }
  for (std::size_t way = 0; way < ways.size(); ++way) EXPECT_GT(refused[way], 0U) << way;
}

// All members alike, and all wrong: symmetry holds, and what it stands for does not.
TEST(VerifySymmetry, what_is_wrong_everywhere_is_refused_by_name) {
  const auto everywhere = [](Program program, std::uint32_t lane, std::uint32_t loop, const std::function<void(Op&)>& spoil) {
    for (auto& lanes : program.lanes) spoil(lanes[lane][loop].ops[0]);
    return program;
  };
  const auto few = [](const Program& program) {
    return shoal::refusal([&] { proved_by_symmetry(program, numbers_below(program.chunks)); });
  };
  const std::string ring = "program ring of 5 ranks: ";
  EXPECT_EQ(few(everywhere(ring_all_reduce(5), 0, 1, [](Op& op) { op.after.clear(); })).substr(0, ring.size() + 45),
            ring + "rank 2, lane 1, op 0, iteration 0: writes the");
  EXPECT_EQ(few(everywhere(ring_all_reduce(5), 0, 0, [](Op& op) { op.after.push_back({1, 1, 0}); })),
            ring + "rank 0, lane 0, op 0, iteration 0: waits for itself, which waits for rank 0, lane 1, op 0, iteration 0");
  EXPECT_EQ(few(everywhere(ring_all_reduce(5), 1, 1, [](Op& op) { op.completes = false; })).substr(0, ring.size() + 28),
            ring + "the result of rank 0, chunk ");
  Program more = ring_all_reduce(5);
  for (auto& lanes : more.lanes) lanes[0].back().times += 1;
  EXPECT_EQ(few(more), ring + "rank 0, lane 0, op 3, iteration 3: sends to rank 1, which never receives it");
  more = ring_all_reduce(5);
  for (auto& lanes : more.lanes) lanes[1].back().times += 1;
  EXPECT_EQ(few(more), ring + "rank 1 receives more from rank 0, lane 0, than it sends");
}

// So many members that verify() goes this way by itself: one defect in the third pass, at a member for which others stand, is named as ever.
TEST(VerifySymmetry, a_defect_deep_in_a_large_torus_is_named) {
  Program torus = grid_all_reduce({{16}, {16}}, all_passes(2));
  EXPECT_TRUE(verify(torus).in_place());
  torus.lanes[201][4][3].ops[0].after.clear();
  const std::string line = shoal::refusal([&] { verify(torus); });
  EXPECT_NE(line.find("rank 201, lane 4, op 3, iteration "), std::string::npos) << line;
  EXPECT_NE(line.find("nothing makes it wait for rank 201, lane 5"), std::string::npos) << line;
}

// Loops of several ops, which no builder here writes: the two lanes of a ring of three taken apart and written as such.
TEST(VerifySymmetry, ops_of_a_loop_take_turns) {
  Program pairs;
  pairs.name = "pairs";
  pairs.ranks = 2;
  pairs.chunks = 8;
  pairs.order = AddOrder::tree;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    // Of chunk 2k + rank the own input goes over, the other's chunk 2k + 1 - rank comes and is whole here; then it goes back.
    Op over = stepping(send(1 - rank, 1 - rank, kInput), 2), back = after(stepping(send(1 - rank, rank, kOutput), 2), {1, 0});
    Op comes = completing(stepping(receive_reduce(1 - rank, 0, rank, kInput, kOutput), 2)),
       home = stepping(receive(1 - rank, 0, 1 - rank, kOutput), 2);
    pairs.lanes.push_back({{{4, {over, back}}}, {{4, {comes, home}}}});
  }
  EXPECT_NO_THROW(verify(pairs));
  EXPECT_TRUE(is_proved_in_few(pairs));
  std::swap(pairs.lanes[1][0][0].ops[0], pairs.lanes[1][0][0].ops[1]);
  EXPECT_NE(shoal::refusal([&] { verify(pairs); }), "nothing was refused");
  EXPECT_FALSE(is_proved_in_few(pairs));
}

}  // namespace
}  // namespace shoal::collective
