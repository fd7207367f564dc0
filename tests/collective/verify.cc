// The verifier refuses what is wrong. Method: take proved programs, break each op in turn in one way, and expect a
// refusal that tells the fault; then small programs written by hand, each with the whole line.
#include "shoal/collective/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/core/error.h"

namespace shoal::collective {
namespace {

std::string verdict(const Program& program) {
  try {
    verify(program);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "proved";
}

std::vector<Program> specimens() {
  std::vector<Program> all;
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                                      Collective::reduce, Collective::gather, Collective::scatter, Collective::all_to_all}) {
    for (const std::string& name : builder_names(collective)) {
      for (const std::uint32_t ranks : {3U, 4U, 6U}) all.push_back(build(collective, name, ranks, collective == Collective::reduce ? 1 : 0));
    }
  }
  return all;
}

struct At {
  std::uint32_t rank, lane, number;  // number: of the op in its lane
  std::size_t loop, op;
};

// Calls breaks(program copy, where) for every op; it returns false where this way of breaking does not apply.
// Every broken program must be refused with one of `words`.
void each_op_broken(const std::vector<std::string>& words, const std::function<bool(Program&, const At&)>& breaks) {
  std::size_t broken = 0;
  for (const Program& good : specimens()) {
    for (std::uint32_t rank = 0; rank < good.ranks; ++rank) {
      for (std::uint32_t lane = 0; lane < good.lanes[rank].size(); ++lane) {
        std::uint32_t number = 0;
        for (std::size_t loop = 0; loop < good.lanes[rank][lane].size(); ++loop) {
          for (std::size_t op = 0; op < good.lanes[rank][lane][loop].ops.size(); ++op, ++number) {
            Program bad = good;
            if (!breaks(bad, {rank, lane, number, loop, op})) continue;
            ++broken;
            const std::string line = verdict(bad);
            const bool told = std::any_of(words.begin(), words.end(), [&](const std::string& word) { return line.find(word) != std::string::npos; });
            ASSERT_TRUE(told) << line << "\n" << name(good.collective) << " " << good.name << " of " << good.ranks
                              << ": rank " << rank << ", lane " << lane << ", op " << number;
          }
        }
      }
    }
  }
  EXPECT_GT(broken, 10U);
}

Op& op_at(Program& program, const At& at) { return program.lanes[at.rank][at.lane][at.loop].ops[at.op]; }
bool is_receive(const Op& op) { return op.kind == OpKind::receive || op.kind == OpKind::receive_reduce; }

TEST(Verify, a_missing_op_is_refused) {
  each_op_broken({"never receives it", "chunks only", "sends chunk", "is never written", "in which nothing is left", "which nobody reads",
                  "before it is written", "lacks the contribution", "is next"},
                 [](Program& program, const At& at) {
    program.lanes[at.rank][at.lane].erase(program.lanes[at.rank][at.lane].begin() + static_cast<std::ptrdiff_t>(at.loop));
    for (Lane& lane : program.lanes[at.rank]) {  // who waited for it waits no more; later ops move up
      for (Loop& loop : lane) {
        for (Op& op : loop.ops) {
          std::erase_if(op.after, [&](const After& wait) { return wait.lane == at.lane && wait.op == at.number; });
          for (After& wait : op.after) wait.op -= wait.lane == at.lane && wait.op > at.number ? 1 : 0;
        }
      }
    }
    return true;
  });
}

TEST(Verify, an_op_done_twice_is_refused) {
  each_op_broken({"never receives it", "chunks only", "sends chunk", "in which nothing is left", "which nobody reads", "is next",
                  "but nothing makes it wait"},
                 [](Program& program, const At& at) {
    Lane& lane = program.lanes[at.rank][at.lane];
    lane.push_back({lane[at.loop].times, {op_at(program, at)}});
    return true;
  });
}

TEST(Verify, another_chunk_is_refused) {
  each_op_broken({"sends chunk", "is next", "is never written", "which this rank does not have", "where this rank has no room",
                  "but nothing makes it wait"},
                 [](Program& program, const At& at) {
    Op& op = op_at(program, at);
    op.chunk = (op.chunk + 1) % program.chunks;
    return program.chunks > 1;
  });
}

TEST(Verify, another_peer_is_refused) {
  each_op_broken({"never receives it", "chunks only", "speaks to itself", "sends chunk", "as lane", "which has"},
                 [](Program& program, const At& at) {
    Op& op = op_at(program, at);
    op.peer = (op.peer + 1) % program.ranks;
    return op.kind == OpKind::send || is_receive(op);
  });
}

TEST(Verify, another_lane_of_the_peer_is_refused) {
  each_op_broken({"chunks only", "never receives it", "as lane", "sends chunk"}, [](Program& program, const At& at) {
    Op& op = op_at(program, at);
    if (!is_receive(op) || program.lanes[op.peer].size() < 2) return false;
    op.peer_lane = (op.peer_lane + 1) % static_cast<std::uint32_t>(program.lanes[op.peer].size());
    return true;
  });
}

// So the builders write no wait in vain, either, but for one kind: a lane's later op waits for the same op as an earlier one.
TEST(Verify, a_missing_wait_is_refused) {
  each_op_broken({"but nothing makes it wait for", "before it is written"}, [](Program& program, const At& at) {
    Op& op = op_at(program, at);
    if (op.after.empty()) return false;
    const After gone = op.after.front();
    op.after.erase(op.after.begin());
    const Lane& lane = program.lanes[at.rank][at.lane];
    return std::none_of(lane.begin(), lane.begin() + static_cast<std::ptrdiff_t>(at.loop), [&](const Loop& loop) {
      const auto& waits = loop.ops[0].after;
      return std::any_of(waits.begin(), waits.end(), [&](const After& wait) { return wait.lane == gone.lane && wait.op == gone.op; });
    });
  });
}

TEST(Verify, a_wait_for_another_iteration_is_refused) {
  each_op_broken({"but nothing makes it wait for", "before it is written", "waits for itself"}, [](Program& program, const At& at) {
    Op& op = op_at(program, at);
    const Lane& lane = program.lanes[at.rank][at.lane];
    if (op.after.empty() || lane[at.loop].times < 2) return false;
    op.after[0].shift -= 1;
    return true;
  });
}

TEST(Verify, a_missing_completes_is_refused) {
  each_op_broken({"is never completed"}, [](Program& program, const At& at) {
    return std::exchange(op_at(program, at).completes, false);
  });
}

TEST(Verify, an_early_completes_is_refused) {
  each_op_broken({"without the contribution of rank", "a second time", "cannot complete", "nothing is added"}, [](Program& program, const At& at) {
    return !std::exchange(op_at(program, at).completes, true);
  });
}

TEST(Verify, reading_the_output_instead_of_the_input_is_refused) {
  each_op_broken({"before it is written", "but nothing makes it wait for"}, [](Program& program, const At& at) {
    for (Site& site : op_at(program, at).sources) {
      if (site.buffer == Buffer::input) {
        site.buffer = Buffer::output;
        return true;
      }
    }
    return false;
  });
}

TEST(Verify, adding_in_another_order_than_declared_is_refused) {
  each_op_broken({"is not added in the declared order, left_fold from rank 0 on"}, [](Program& program, const At& at) {
    Op& op = op_at(program, at);
    if (op.kind != OpKind::fold || program.order != AddOrder::left_fold) return false;
    std::swap(op.sources.front(), op.sources.back());
    return true;
  });
}

// --- by hand: an all-reduce of two members, and what may go wrong with it

Op make(OpKind kind, std::uint32_t peer, std::vector<Site> sources, Site target, std::vector<After> after = {}, bool completes = false) {
  Op op;
  op.kind = kind;
  op.peer = peer;
  op.sources = std::move(sources);
  op.target = target;
  op.after = std::move(after);
  op.completes = completes;
  return op;
}
constexpr Site kIn{Buffer::input, 0}, kOut{Buffer::output, 0}, kWindow{Buffer::scratch, 0};
Loop once(Op op) { return {1, {std::move(op)}}; }

Program two(std::function<Lane(std::uint32_t peer)> sends, std::function<Lane(std::uint32_t peer)> receives) {
  Program program;
  program.name = "two";
  program.ranks = 2;
  program.slots = 1;
  program.order = AddOrder::left_fold;
  program.lanes = {{sends(1), receives(1)}, {sends(0), receives(0)}};
  return program;
}
Lane send_input(std::uint32_t peer) { return {once(make(OpKind::send, peer, {kIn}, {}))}; }
Lane add_input(std::uint32_t peer) { return {once(make(OpKind::receive_reduce, peer, {kIn}, kOut, {}, true))}; }

TEST(Verify, two_members_exchanging_their_input_are_proved) { EXPECT_EQ(verdict(two(send_input, add_input)), "proved"); }

TEST(Verify, members_that_wait_for_each_other_are_refused) {
  const auto late = [](std::uint32_t peer) { return Lane{once(make(OpKind::send, peer, {kIn}, {}, {{1, 0, 0}}))}; };
  EXPECT_EQ(verdict(two(late, add_input)),
            "program two of 2 ranks: rank 0, lane 0, op 0, iteration 0: waits for itself, which waits for rank 0, lane 1, op 0, iteration 0"
            ", for rank 1, lane 0, op 0, iteration 0, for rank 1, lane 1, op 0, iteration 0");
}

TEST(Verify, an_op_that_waits_for_its_own_lane_further_on_is_refused) {
  const auto late = [](std::uint32_t peer) { return Lane{once(make(OpKind::send, peer, {kIn}, {}, {{0, 0, 0}}))}; };
  EXPECT_EQ(verdict(two(late, add_input)), "program two of 2 ranks: rank 0, lane 0, op 0, iteration 0: waits for itself");
}

// The reason why direct programs have a lane a peer: in one lane, every owner's windows fill with its first sender's slices.
TEST(Verify, one_lane_for_all_peers_dead_locks_on_windows) {
  Program program = direct_reduce_scatter(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    auto& lanes = program.lanes[rank];
    lanes[0].push_back(std::move(lanes[1][0]));  // lane 0 sends to both
    lanes[1].clear();
    lanes[3][0].ops[0].peer_lane = 0;
  }
  EXPECT_THAT(verdict(program), testing::HasSubstr("waits for itself, which waits for"));
}

TEST(Verify, a_contribution_added_twice_is_refused) {
  const auto sends = [](std::uint32_t peer) {
    Lane lane = send_input(peer);
    lane[0].times = 2;
    return lane;
  };
  const auto adds = [](std::uint32_t peer) {
    return Lane{once(make(OpKind::receive_reduce, peer, {kIn}, kOut)),
                once(make(OpKind::receive_reduce, peer, {kOut}, kOut, {{1, 0, 0}}, true))};
  };
  EXPECT_EQ(verdict(two(sends, adds)),
            "program two of 2 ranks: rank 0, lane 1, op 1, iteration 0: adds the contribution of rank 1 to chunk 0 a second time");
}

TEST(Verify, adding_to_a_completed_chunk_is_refused) {
  const auto sends = [](std::uint32_t peer) {
    Lane lane = send_input(peer);
    lane[0].times = 2;
    return lane;
  };
  const auto adds = [](std::uint32_t peer) {
    return Lane{once(make(OpKind::receive_reduce, peer, {kIn}, kOut, {}, true)),
                once(make(OpKind::receive_reduce, peer, {kOut}, kOut, {{1, 0, 0}}))};
  };
  EXPECT_EQ(verdict(two(sends, adds)), "program two of 2 ranks: rank 0, lane 1, op 1, iteration 0: adds to chunk 0, which is complete");
}

TEST(Verify, writing_over_what_is_being_sent_is_refused) {
  const auto sends = [](std::uint32_t peer) {
    return Lane{once(make(OpKind::copy, 0, {kIn}, kOut)), once(make(OpKind::send, peer, {kOut}, {}, {{0, 0, 0}}))};
  };
  const auto takes = [](std::uint32_t peer) { return Lane{once(make(OpKind::receive, peer, {}, kWindow))}; };
  Program program = two(sends, takes);
  const Lane adds{once(make(OpKind::fold, 0, {kOut, kWindow}, kOut, {{1, 0, 0}, {0, 0, 0}}, true))};
  for (auto& lanes : program.lanes) lanes.push_back(adds);
  EXPECT_EQ(verdict(program),
            "program two of 2 ranks: rank 0, lane 2, op 0, iteration 0: writes the output of chunk 0, but nothing makes it wait for "
            "rank 0, lane 0, op 1, iteration 0");
  for (auto& lanes : program.lanes) lanes[2][0].ops[0].after[1].op = 1;
  EXPECT_EQ(verdict(program), "proved");
}

// Which of two lanes comes first would be a matter of time.
TEST(Verify, a_window_written_by_two_lanes_is_refused) {
  Program program = flat_reduce(3, 0);
  for (Loop* loop : {&program.lanes[0][1][0], &program.lanes[0][0][0]}) loop->ops[0].target = kWindow;
  EXPECT_EQ(verdict(program), "program flat of 3 ranks: rank 0, lane 1, op 0, iteration 0: writes scratch window 0, as lane 0 does, too");
}

TEST(Verify, a_result_where_no_output_is_expected_is_refused) {
  Program program = flat_reduce(2, 0);
  program.lanes[1].push_back({once(make(OpKind::copy, 0, {kIn}, kOut))});
  EXPECT_EQ(verdict(program), "program flat of 2 ranks: rank 1, lane 1, op 0, iteration 0: writes chunk 0 to the output, where this rank has "
                              "no room for it");
}

TEST(Verify, fields_out_of_range_are_refused_in_words) {
  const auto with = [](const std::function<void(Program&)>& change) {
    Program program = direct_all_reduce(3);
    change(program);
    return verdict(program);
  };
  const auto op = [](Program& program) -> Op& { return program.lanes[0][0][0].ops[0]; };
  const std::string start = "program direct of 3 ranks: ", at = start + "rank 0, lane 0, op 0: ";
  EXPECT_EQ(with([](Program& p) { p.ranks = 4; }), "program direct of 4 ranks: lanes of 3 ranks in a program of 4");
  EXPECT_EQ(with([](Program& p) { p.root = 3; }), start + "root 3 of 3 ranks");
  EXPECT_EQ(with([](Program& p) { p.chunks = 0; }), start + "no chunk");
  EXPECT_EQ(with([](Program& p) { p.order = AddOrder::none; }), start + "order of addition \"none\" for all_reduce");
  EXPECT_EQ(with([](Program& p) { p.collective = Collective::all_to_all; }), start + "3 chunks; all_to_all of 3 ranks has 9");
  EXPECT_EQ(with([&](Program& p) { op(p).peer = 3; }), at + "peer 3 of 3");
  EXPECT_EQ(with([&](Program& p) { op(p).chunk = 3; }), at + "chunk 3 of 3");
  EXPECT_EQ(with([&](Program& p) { op(p).sources.clear(); }), at + "send with 0 sources");
  EXPECT_EQ(with([&](Program& p) { op(p).sources[0] = {Buffer::scratch, 2}; }), at + "scratch window 2 of 2");
  EXPECT_EQ(with([&](Program& p) { op(p).after = {{9, 0, 0}}; }),
            start + "rank 0, lane 0, op 0, iteration 0: waits for lane 9, op 0, which does not exist");
  EXPECT_EQ(with([](Program& p) { p.lanes[0][4][0].ops[0].target = kIn; }), start + "rank 0, lane 4, op 0: writes the input");
}

TEST(Verify, a_program_too_long_to_unroll_is_refused) {
  Program program = two(send_input, add_input);
  program.lanes[0][0][0].times = 4'000'000'000U;
  try {
    verify(program);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_STREQ(error.what(), "program two: more than 536870912 ops when its loops are unrolled");
  }
}

}  // namespace
}  // namespace shoal::collective
