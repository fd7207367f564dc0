// A run that is recorded is run again, on a network with other delays and with workers that are quick at other moments: each read and the rows at
// the end have the same bits, whatever the consistency. SHOAL_SEEDS widens the search, SHOAL_FIRST_SEED begins it elsewhere.
#include "shoal/table/order.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"
#include "tests/from_environment.h"
#include "tests/refusal.h"
#include "tests/table/scratch.h"

namespace shoal::table {
namespace {

constexpr std::size_t kOrderedColumns = 24;      // enough that one that changes travels alone

// What workers learn: each reads rows, adds to some or all columns what depends on all that it read, and ticks.
struct Run {
  net::Rank members = 3;
  std::uint32_t workers_a_member = 1;
  Consistency consistency = Async{};
  Rule rule{};
  Encoding encoding = Encoding::none;
  std::uint64_t network = 1, seed = 1;    // network: of delays and of who moves; seed: of what they do
  OrderKept order{};
  Clock clocks = 8;
};

class Learners {
 public:
  explicit Learners(const Run& run) : run_(run), job_(run.members, {.seed = run.network, .rate = run.network % 2 == 0 ? 2e5 : 125e6}), moves_(run.network) {
    const TablesOptions options{.workers_a_member = run.workers_a_member, .disk = [](const auto& job) { job(); }, .functions = [](const auto& job) { job(); },
                                .order = run.order};
    for (net::Rank rank = 0; rank < run.members; ++rank) tables_.push_back(std::make_unique<Tables>(job_.member(rank), options));
    const std::uint32_t count = run.members * run.workers_a_member;
    for (std::uint32_t w = 0; w < count; ++w) {
      auto table = tables_[w / run.workers_a_member]->worker(w % run.workers_a_member).open<float>(
          {.name = "rows", .width = kOrderedColumns, .consistency = run.consistency, .rule = run.rule, .encoding = run.encoding});
      workers_.push_back({table, w % run.workers_a_member, std::mt19937_64(run.seed * 1000 + w)});
    }
  }
  // Everything that was read, worker by worker, in the order of its reads; last the rows at the end.
  std::vector<std::vector<float>> result() {
    const auto all_done = [&] { return std::ranges::all_of(workers_, [](const One& one) { return one.state == State::over; }); };
    while (!all_done()) {
      if (!job_.run([&] { return std::ranges::any_of(workers_, [&](One& one) { return can_move(one); }); })) {
        for (net::Rank rank = 0; rank < run_.members; ++rank) {
          if (const auto failure = job_.member(rank).failure()) throw Error(*failure);
        }
        throw Error(Code::internal, "nobody can move, and nothing is on its way");
      }
      std::size_t w = moves_() % workers_.size();
      while (!can_move(workers_[w])) w = (w + 1) % workers_.size();
      if (moves_() % 3 != 0) {            // time passes instead
        const Instant until = job_.now() + std::chrono::microseconds(moves_() % 500);
        job_.at(until - Instant{}, [] {});
        job_.run([&] { return job_.now() >= until; });
      }
      if (can_move(workers_[w])) move(workers_[w]);
    }
    std::vector<std::vector<float>> read;
    for (const One& one : workers_) read.push_back(one.read);
    return read;
  }

 private:
  enum class State { ask, read, add, tick, ticked, arrive, meet, look, over };
  struct One {
    Table<float> table;
    std::uint32_t local;
    std::mt19937_64 random;
    State state = State::ask;
    Clock done = 0;
    std::vector<Key> keys{};
    std::vector<float> values{}, read{};
    std::size_t at = 0;
  };
  static constexpr Key kKeys = 12;

  bool can_move(One& one) {
    auto& copy = one.table.copy();
    switch (one.state) {
      case State::over: return false;
      case State::read:
      case State::look: return copy.ready(one.local, one.keys, one.at) && copy.is_turn(one.local);
      case State::add: return copy.may_add(one.local, one.keys, one.values) && copy.is_turn(one.local);
      case State::ticked: return copy.may_go_on(one.local);
      case State::meet: return copy.flushed(one.local);
      default: return copy.is_turn(one.local);
    }
  }
  void read(One& one) {
    one.values.resize(one.keys.size() * kOrderedColumns);
    one.table.read(one.keys, one.values);
    one.read.insert(one.read.end(), one.values.begin(), one.values.end());
  }
  void move(One& one) {
    switch (one.state) {
      case State::ask:
        one.keys.clear();
        for (int i = 0; i < 4; ++i) one.keys.push_back(one.random() % kKeys);
        one.at = 0;
        one.table.intend(one.keys);
        one.state = State::read;
        break;
      case State::read: {
        read(one);
        const float sum = std::accumulate(one.values.begin(), one.values.end(), 0.0f);
        const bool in_one_column = one.random() % 2 == 0;
        const std::size_t column = one.random() % kOrderedColumns;
        for (std::size_t i = 0; i < one.values.size(); ++i) {
          one.values[i] = in_one_column && i % kOrderedColumns != column ? 0 : 0.001f * sum + static_cast<float>(one.random() % 1000) / 777;
        }
        one.state = State::add;
        break;
      }
      case State::add:
        one.table.add(one.keys, one.values);
        one.state = State::tick;
        break;
      case State::tick:
        one.table.end_clock();
        one.state = State::ticked;
        break;
      case State::ticked: one.state = ++one.done < run_.clocks ? State::ask : State::arrive; break;
      case State::arrive:
        one.table.arrive();
        one.state = State::meet;
        break;
      case State::meet:
        one.keys.resize(kKeys);
        std::iota(one.keys.begin(), one.keys.end(), Key{0});
        one.at = 0;
        one.state = State::look;
        break;
      default:
        read(one);
        one.state = State::over;
    }
  }

  const Run run_;
  net::InprocJob job_;
  std::mt19937_64 moves_;
  std::vector<std::unique_ptr<Tables>> tables_;
  std::vector<One> workers_;
};

std::vector<std::vector<float>> result_of(Run run, std::uint64_t network, const OrderKept& order) {
  run.network = network;
  run.order = order;
  return Learners(run).result();
}

void expect_same_again(const std::vector<Run>& any) {
  int others = 0, runs = 0;               // others: that no record holds to what the first was
  for (const std::uint64_t seed : seeds(20)) {
    Run run = drawn_from(any, seed);
    SCOPED_TRACE(name(run.consistency) + ", seed " + std::to_string(seed));
    const Scratch scratch;
    run.seed = seed;
    run.members = static_cast<net::Rank>(1 + seed % 4);
    run.workers_a_member = static_cast<std::uint32_t>(1 + seed % 3 / 2);
    const auto recorded = result_of(run, seed, {OrderKept::How::record, scratch / "order"});
    const auto again = result_of(run, seed + 5000, {OrderKept::How::replay, scratch / "order"});
    ASSERT_EQ(again, recorded);
    others += result_of(run, seed + 5000, {}) != recorded;
    ++runs;
  }
  if (runs >= 10) {
    EXPECT_GT(others, 0) << "every run is like the first";
  }
}

TEST(Order, of_asynchronous_runs_is_kept_to) { expect_same_again({{.consistency = Async{}}}); }
TEST(Order, with_clocks) {
  expect_same_again({{.consistency = Bsp{}}, {.consistency = Ssp{2}}, {.consistency = Essp{2}}, {.consistency = Cap{2}}, {.consistency = Significance{0.01, 2}}});
}
TEST(Order, with_clocks_that_time_or_chance_decides) { expect_same_again({{.consistency = Dssp{0, 3}}, {.consistency = Pssp{2, 1}}}); }
TEST(Order, with_bounds_on_values) {
  expect_same_again({{.consistency = consistency_from("vap:4")}, {.consistency = consistency_from("vap-strong:4")}, {.consistency = consistency_from("cvap:2:4")}});
}
TEST(Order, of_steps_by_rules) {
  expect_same_again({{.rule = Rule::adagrad(0.5)}, {.consistency = Essp{2}, .rule = rule_from("adaptive-revision:0.5")}});
}
TEST(Order, of_rounded_rows) { expect_same_again({{.encoding = Encoding::int8}, {.consistency = Cap{2}, .encoding = Encoding::bf16}}); }

// What a process had noted when it was killed is there; behind that the run goes on.
TEST(Order, goes_on_freely_where_the_record_ends) {
  const Scratch scratch;
  const auto recorded = result_of({.members = 3}, 7, {OrderKept::How::record, scratch / "order"});
  for (const auto& file : std::filesystem::directory_iterator(scratch / "order")) {
    const auto size = std::filesystem::file_size(file.path());
    std::ifstream text(file.path());
    std::string line;
    std::getline(text, line);
    std::filesystem::resize_file(file.path(), line.size() + 1 + (size - line.size()) / 200);
    std::filesystem::resize_file(file.path(), size);  // zeros, as a process that was killed leaves them
  }
  const auto again = result_of({.members = 3}, 5007, {OrderKept::How::replay, scratch / "order"});
  ASSERT_EQ(again.size(), recorded.size());
  for (std::size_t w = 0; w < again.size(); ++w) {
    EXPECT_EQ(again[w].size(), recorded[w].size());
    EXPECT_EQ(again[w].front(), recorded[w].front());
  }
}

// --- refusals

TEST(OrderRefuses, a_run_that_is_another_one) {
  const Scratch scratch;
  result_of({.members = 2, .seed = 3}, 1, {OrderKept::How::record, scratch / "order"});
  std::string line = refusal([&] { result_of({.members = 2, .seed = 4}, 1, {OrderKept::How::replay, scratch / "order"}); }, Code::mismatch);
  EXPECT_NE(line.find("of the recorded run was another one (replay the same program with the same data, options and seed)"), std::string::npos) << line;
}
TEST(OrderRefuses, other_members_and_other_tables) {
  const Scratch scratch;
  result_of({.members = 2}, 1, {OrderKept::How::record, scratch / "order"});
  std::string line = refusal([&] { result_of({.members = 3}, 1, {OrderKept::How::replay, scratch / "order"}); });
  EXPECT_NE(line.find("rank-0 of 2, copies of 2048 2048, worker 0 of 2, rows: f32 x 24, async"), std::string::npos) << line;
  EXPECT_NE(line.find("and this run has \"Shoal's order 1: rank-0 of 3"), std::string::npos) << line;
  line = refusal([&] { result_of({.members = 2, .consistency = Ssp{2}}, 1, {OrderKept::How::replay, scratch / "order"}); });
  EXPECT_NE(line.find("(replay what was recorded)"), std::string::npos) << line;
}
TEST(OrderRefuses, to_record_over_a_record_and_to_replay_none) {
  const Scratch scratch;
  result_of({.members = 1}, 1, {OrderKept::How::record, scratch / "order"});
  std::string line = refusal([&] { result_of({.members = 1}, 1, {OrderKept::How::record, scratch / "order"}); });
  EXPECT_NE(line.find("rank-0-copies.order: is there already (record into another folder)"), std::string::npos) << line;
  line = refusal([&] { result_of({.members = 1}, 1, {OrderKept::How::replay, scratch / "none"}); });
  EXPECT_NE(line.find("rank-0-copies.order: cannot be read: No such file or directory (replay with the members and tables that were recorded)"), std::string::npos)
      << line;
}

}  // namespace
}  // namespace shoal::table
