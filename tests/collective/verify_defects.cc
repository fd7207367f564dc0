// One defect of each kind, planted in a program that is proved without it: the verifier names it, and where it is.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <utility>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"
#include "shoal/collective/build_rings.h"
#include "shoal/collective/build_trees.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "tests/collective/in_few.h"

namespace shoal::collective {
namespace {

Op& faulty_op(Program& program, std::uint32_t rank, std::uint32_t lane, std::uint32_t loop) { return program.lanes[rank][lane][loop].ops[0]; }
void lose(Program& program, std::uint32_t rank, std::uint32_t lane, std::size_t loop) {
  auto& loops = program.lanes[rank][lane];
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(loop));
}
Loop single(Op op) { return {1, {std::move(op)}}; }

// Two members that exchange their input: lane 0 sends, lane 1 takes it into a window, lane 2 adds.
Program program_of_two() {
  Author author("two", Collective::all_reduce, 2, AddOrder::left_fold);
  author.slots(1);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (int lane = 0; lane < 3; ++lane) author.lane(rank);
    const Mark copied = author.add(rank, 0, copy(0, kInput, kOutput));
    const Mark sent = author.add(rank, 0, after(send(1 - rank, 0, kOutput), copied));
    const Mark taken = author.add(rank, 1, receive(1 - rank, 0, 0, window(0)));
    author.add(rank, 2, completing(after(after(after(fold(0, {kOutput, window(0)}, kOutput), taken), sent), copied)));
  }
  return author.take();
}

// Ring of four, rank r:   lane 0: send r-1 from input; 2x send r-2-i after 1.0; send r after 1.1; 2x send r-1-i after 1.2
//                         lane 1: 2x receive_reduce r-2-i; receive_reduce r completing; 3x receive r-1-i
Program ring() { return ring_all_reduce(4); }
// Direct of three: lanes 0-1 send, 2-3 receive into windows 0-1, 4 folds, 5-6 send the result, 7-8 receive results.
Program direct() { return direct_all_reduce(3); }
Program tree() { return double_binary_tree_all_reduce(5); }

struct Defect {
  const char* name;
  std::function<Program()> good;
  std::function<void(Program&)> plant;
  const char* line;  // after "program NAME of N ranks: "
};
std::ostream& operator<<(std::ostream& out, const Defect& defect) { return out << defect.name; }

const Defect kDefects[] = {
    // lost
    {"a_lost_send", ring, [](Program& p) { lose(p, 0, 0, 3); },
     "rank 1, lane 1, op 2, iteration 1: receives from rank 0, lane 0, which sends it 4 chunks only"},
    {"a_lost_receive", direct, [](Program& p) { lose(p, 0, 7, 0); },
     "rank 2, lane 5, op 0, iteration 0: sends to rank 0, which never receives it"},
    {"a_lost_iteration", ring, [](Program& p) { p.lanes[2][1][2].times = 2; },
     "rank 1, lane 0, op 3, iteration 1: sends to rank 2, which never receives it"},
    {"a_lost_member", direct, [](Program& p) { p.lanes[1].clear(); },
     "rank 0, lane 3, op 0: lane 1 of rank 1, which has 0"},
    {"a_lost_contribution_of_another", direct, [](Program& p) { faulty_op(p, 0, 4, 0).sources.pop_back(); },
     "rank 0, lane 2, op 0, iteration 0: writes scratch window 0, which nobody reads"},
    {"a_lost_contribution_of_ones_own", direct, [](Program& p) { faulty_op(p, 0, 4, 0).sources.erase(faulty_op(p, 0, 4, 0).sources.begin()); },
     "rank 0, lane 4, op 0, iteration 0: completes chunk 0 without the contribution of rank 0"},
    {"a_sum_that_is_passed_over", tree, [](Program& p) {
       for (auto& lane : p.lanes[2]) {
         if (lane[0].ops[0].kind != OpKind::send) continue;
         lane[0].ops[0].sources[0] = kInput;
         break;
       }
     },
     "rank 0, lane 0, op 0, iteration 0: completes chunk 0 without the contribution of rank 1"},
    {"a_chunk_that_nobody_writes", direct, [](Program& p) { p.chunks = 4; },
     "the result of rank 0, chunk 3, is never written"},
    {"a_result_that_is_not_written", [] { return binomial_broadcast(4, 0); }, [](Program& p) { lose(p, 0, 1, 0); },
     "the result of rank 0, chunk 0, is never written"},
    {"a_part_without_share", ring, [](Program& p) { p.shares = {0, 0, 0, 0}; },
     "the chunks of part 0 have no share"},
    // doubled
    {"a_doubled_send", ring, [](Program& p) { p.lanes[1][0][3].times = 3; },
     "rank 1, lane 0, op 3, iteration 2: sends to rank 2, which never receives it"},
    {"a_doubled_receive", ring, [](Program& p) { p.lanes[1][1][2].times = 4; },
     "rank 1, lane 1, op 2, iteration 3: receives from rank 0, lane 0, which sends it 6 chunks only"},
    {"a_doubled_contribution", direct, [](Program& p) { faulty_op(p, 0, 4, 0).sources.push_back(kInput); },
     "rank 0, lane 4, op 0, iteration 0: adds the contribution of rank 0 to chunk 0 a second time"},
    {"a_sum_that_comes_round_again", ring, [](Program& p) {
       Op& op = faulty_op(p, 1, 1, 2);
       op.kind = OpKind::receive_reduce;
       op.sources = {kInput};
     },
     "rank 1, lane 1, op 2, iteration 0: adds to chunk 0, which is complete"},
    {"a_mean_divided_twice", direct, [](Program& p) {
       p.lanes[0][4].push_back(single(completing(after(copy(0, kOutput, kOutput), {4, 0}))));
       for (const std::uint32_t lane : {5U, 6U}) faulty_op(p, 0, lane, 0).after[0].op = 1;
     },
     "rank 0, lane 4, op 1, iteration 0: completes chunk 0 a second time"},
    // reordered
    {"chunks_sent_the_other_way_round", ring, [](Program& p) { faulty_op(p, 0, 0, 1).chunk_step = 1; },
     "rank 1, lane 1, op 1, iteration 0: receives chunk 1, but rank 0, lane 0, op 1, iteration 1 sends chunk 3"},
    {"ops_in_another_order", ring, [](Program& p) { std::swap(p.lanes[0][1][0], p.lanes[0][1][1]); },
     "rank 0, lane 1, op 0, iteration 0: receives chunk 0, but rank 3, lane 0, op 0, iteration 0 sends chunk 2"},
    {"streams_in_each_others_place", direct, [](Program& p) { std::swap(faulty_op(p, 0, 2, 0).peer_lane, faulty_op(p, 0, 8, 0).peer_lane); },
     "rank 0, lane 8, op 0, iteration 0: receives from rank 1, lane 0, which sends it 0 chunks only"},
    {"another_order_of_addition", direct, [](Program& p) { std::swap(faulty_op(p, 0, 4, 0).sources[0], faulty_op(p, 0, 4, 0).sources[2]); },
     "the result of rank 0, chunk 0, is not added in the declared order, left_fold from rank 0 on"},
    {"an_order_of_addition_that_it_does_not_keep", ring, [](Program& p) { p.order = AddOrder::left_fold; },
     "the result of rank 0, chunk 0, is not added in the declared order, left_fold from rank 0 on"},
    // deadlocked
    {"sends_that_wait_for_what_they_bring_about", ring, [](Program& p) {
       for (std::uint32_t rank = 0; rank < 4; ++rank) faulty_op(p, rank, 0, 0).after.push_back({1, 1, 0});
     },
     "rank 0, lane 0, op 0, iteration 0: waits for itself, which waits for rank 0, lane 1, op 0, iteration 0, for rank 3, lane 0, op 0, iteration 0, for rank 3, lane 1, op 0, iteration 0, and 4 more"},
    {"an_op_behind_itself_in_its_lane", ring, [](Program& p) { faulty_op(p, 3, 0, 0).after.push_back({0, 2, 0}); },
     "rank 3, lane 0, op 0, iteration 0: waits for itself"},
    {"members_that_listen_before_they_speak", [] { return swing_all_reduce(2); }, [](Program& p) {
       for (auto& lanes : p.lanes) {
         lanes[1].insert(lanes[1].end(), lanes[0].begin(), lanes[0].end());
         lanes[0].clear();
         for (auto& lane : lanes) {
           for (auto& loop : lane) {
             if (loop.ops[0].kind == OpKind::receive) loop.ops[0].peer_lane = 1;
           }
         }
       }
     },
     "rank 0, lane 1, op 0, iteration 0: waits for itself, which waits for rank 1, lane 1, op 0, iteration 0"},
    {"windows_that_are_full", [] { return direct_reduce_scatter(3); }, [](Program& p) {
       for (auto& lanes : p.lanes) {  // one lane sends to both
         lanes[0].push_back(std::move(lanes[1][0]));
         lanes[1].clear();
         lanes[3][0].ops[0].peer_lane = 0;
       }
     },
     "rank 0, lane 0, op 0, iteration 0: waits for itself, which waits for rank 1, lane 2, op 0, iteration 0, for rank 1, lane 4, op 0, iteration 0, for rank 1, lane 3, op 0, iteration 0, and 8 more"},
    // hazards
    {"a_send_that_does_not_wait", ring, [](Program& p) { faulty_op(p, 0, 0, 1).after.clear(); },
     "rank 0, lane 0, op 1, iteration 1: reads the output of chunk 1, but nothing makes it wait for rank 0, lane 1, op 0, iteration 1"},
    {"a_result_sent_too_early", direct, [](Program& p) { faulty_op(p, 0, 5, 0).after.clear(); },
     "rank 0, lane 4, op 0, iteration 0: writes the output of chunk 0, but nothing makes it wait for rank 0, lane 5, op 0, iteration 0"},
    {"a_wait_for_another_iteration", ring, [](Program& p) { faulty_op(p, 0, 0, 3).after[0].shift = -1; },
     "rank 0, lane 0, op 3, iteration 1: reads the output of chunk 2, but nothing makes it wait for rank 0, lane 1, op 2, iteration 1"},
    {"a_fold_that_does_not_wait_for_a_window", direct, [](Program& p) { faulty_op(p, 0, 4, 0).after.pop_back(); },
     "rank 0, lane 4, op 0, iteration 0: reads a scratch window of chunk 0, but nothing makes it wait for rank 0, lane 3, op 0, iteration 0"},
    {"an_output_written_while_it_is_sent", program_of_two, [](Program& p) { faulty_op(p, 0, 2, 0).after.erase(faulty_op(p, 0, 2, 0).after.begin() + 1); },
     "rank 0, lane 2, op 0, iteration 0: writes the output of chunk 0, but nothing makes it wait for rank 0, lane 0, op 1, iteration 0"},
    {"an_output_read_before_it_is_written", ring, [](Program& p) { faulty_op(p, 0, 0, 0).sources[0] = kOutput; },
     "rank 0, lane 0, op 0, iteration 0: reads the output of chunk 3 before it is written"},
    {"an_output_written_twice", ring, [](Program& p) {
       p.lanes[2].push_back({single(copy(0, kInput, kOutput))});
     },
     "rank 2, lane 1, op 0, iteration 0: writes the output of chunk 0, but nothing makes it wait for rank 2, lane 2, op 0, iteration 0"},
    {"a_wait_for_nothing", ring, [](Program& p) { faulty_op(p, 0, 0, 1).after[0].op = 7; },
     "rank 0, lane 0, op 1, iteration 0: waits for lane 1, op 7, which does not exist"},
    // whom and what
    {"a_member_that_speaks_to_itself", ring, [](Program& p) { faulty_op(p, 1, 0, 2).peer = 1; },
     "rank 1, lane 0, op 2, iteration 0: speaks to itself"},
    {"another_peer", ring, [](Program& p) { faulty_op(p, 1, 0, 2).peer = 3; },
     "rank 2, lane 1, op 2, iteration 0: receives chunk 1, but rank 1, lane 0, op 3, iteration 0 sends chunk 0"},
    {"a_peer_that_is_none", ring, [](Program& p) { faulty_op(p, 1, 0, 2).peer = 4; },
     "rank 1, lane 0, op 2: peer 4 of 4"},
    {"a_lane_that_the_peer_lacks", ring, [](Program& p) { faulty_op(p, 1, 1, 2).peer_lane = 2; },
     "rank 1, lane 1, op 2: lane 2 of rank 0, which has 2"},
    {"a_stream_with_two_takers", direct, [](Program& p) {
       faulty_op(p, 0, 3, 0).peer = faulty_op(p, 0, 2, 0).peer;
       faulty_op(p, 0, 3, 0).peer_lane = 0;
     },
     "rank 0, lane 3, op 0, iteration 0: takes from rank 2, lane 0, as lane 2 does, too"},
    {"a_chunk_that_is_none", ring, [](Program& p) { faulty_op(p, 1, 0, 2).chunk = 4; },
     "rank 1, lane 0, op 2: chunk 4 of 4"},
    {"a_root_that_is_another", [] { return binomial_broadcast(4, 0); }, [](Program& p) { p.root = 1; },
     "rank 0, lane 1, op 0, iteration 0: reads the input of chunk 0, which this rank does not have"},
    {"input_of_a_server", [] { return served_all_reduce(4, 1); }, [](Program& p) { p.lanes[3].push_back({single(copy(0, kInput, kOutput))}); },
     "rank 3, lane 7, op 0, iteration 0: reads the input of chunk 0, which this rank does not have"},
    {"output_that_a_member_lacks", [] { return chain_reduce(4, 3); }, [](Program& p) { p.lanes[0].push_back({single(copy(0, kInput, kOutput))}); },
     "rank 0, lane 2, op 0, iteration 0: writes chunk 0 to the output, where this rank has no room for it"},
    {"an_addition_where_nothing_is_added", [] { return ring_all_gather(3); }, [](Program& p) {
       Op& op = faulty_op(p, 0, 1, 0);
       op.kind = OpKind::receive_reduce;
       op.sources = {kOutput};
     },
     "rank 0, lane 1, op 0: receive_reduce in all_gather, where nothing is added"},
    {"an_input_written_over", ring, [](Program& p) { faulty_op(p, 0, 1, 2).target = kInput; },
     "rank 0, lane 1, op 2: writes the input"},
    {"a_lane_of_two_kinds_of_links", ring, [](Program& p) { p.by_switches = {true, false, false, false}; },
     "rank 0, lane 0, op 2, iteration 0: speaks of chunk 0, and its lane of chunk 3: only 0 passes switches"},
    // windows
    {"a_window_that_is_none", direct, [](Program& p) { faulty_op(p, 0, 2, 0).target = window(2); },
     "rank 0, lane 2, op 0: scratch window 2 of 2"},
    {"a_window_of_two_writers", direct, [](Program& p) { faulty_op(p, 0, 3, 0).target = window(0); },
     "rank 0, lane 3, op 0, iteration 0: writes scratch window 0, as lane 2 does, too"},
    {"a_window_of_two_readers", direct, [](Program& p) { p.lanes[0][8].push_back(single(copy(0, window(1), kOutput))); },
     "rank 0, lane 8, op 1, iteration 0: reads scratch window 1, as lane 4 does, too"},
    {"a_window_read_twice_at_once", direct, [](Program& p) { faulty_op(p, 0, 4, 0).sources[1] = faulty_op(p, 0, 4, 0).sources[2]; },
     "rank 0, lane 4, op 0: reads scratch window 0 twice"},
    {"a_window_read_once_too_often", [] { return chain_reduce(4, 3); }, [](Program& p) {
       p.lanes[1][0].push_back(single(send(2, 0, window(0))));
       p.lanes[2][1].push_back(single(receive(1, 0, 0, window(0))));
     },
     "rank 1, lane 0, op 1, iteration 0: reads scratch window 0, in which nothing is left"},
    {"a_window_that_nobody_reads", ring, [](Program& p) { p.slots = 1; p.lanes[0].push_back({single(copy(0, kInput, window(0)))}); },
     "rank 0, lane 2, op 0, iteration 0: writes scratch window 0, which nobody reads"},
    {"a_window_with_another_chunk", direct, [](Program& p) { faulty_op(p, 0, 4, 0).chunk = 1; },
     "rank 0, lane 4, op 0, iteration 0: reads chunk 1 from scratch window 0, where chunk 0 is next"},
    // completion
    {"a_sum_that_is_never_completed", ring, [](Program& p) { faulty_op(p, 2, 1, 1).completes = false; },
     "the result of rank 0, chunk 2, is never completed"},
    {"a_sum_completed_too_early", ring, [](Program& p) { faulty_op(p, 2, 1, 0).completes = true; },
     "rank 2, lane 1, op 0, iteration 0: completes chunk 0 without the contribution of rank 0"},
    {"a_receive_that_completes", ring, [](Program& p) { faulty_op(p, 2, 1, 2).completes = true; },
     "rank 2, lane 1, op 2: a receive cannot complete a chunk"},
};

class VerifyDefects : public testing::TestWithParam<Defect> {};

TEST_P(VerifyDefects, is_refused_by_name) {
  const Defect& defect = GetParam();
  Program program = defect.good();
  ASSERT_NO_THROW(verify(program));
  defect.plant(program);
  EXPECT_FALSE(is_proved_in_few(program));
  try {
    verify(program);
    ADD_FAILURE() << "proved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    const std::string line = error.what(), start = "program " + program.name + " of " + std::to_string(program.ranks) + " ranks: ";
    ASSERT_EQ(line.substr(0, start.size()), start);
    EXPECT_EQ(line.substr(start.size()), defect.line);
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, VerifyDefects, testing::ValuesIn(kDefects), [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace shoal::collective
