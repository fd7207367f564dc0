// A program on members that die, with others in their places, and on more of them, group after group, each on a scripted network of its own. What a worker does in
// a clock is a function of its number and the clock; what it reads is held against what it may see.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"

namespace shoal::table {

inline constexpr Key kKeptKeys = 12;
inline constexpr int kPhases = 2;

struct Loss {
  net::Rank rank;
  Nanoseconds when;
};
struct Join {
  net::Rank members;
  Nanoseconds when;
};

// Two phases with a barrier behind each, in which later workers may have less to do; then all rows are read.
template <class T>
class Groups {
 public:
  struct Options {
    net::Rank members = 3;
    std::uint32_t workers_a_member = 1;
    std::vector<net::Rank> servers{};
    std::uint32_t parts = 1;
    Consistency consistency = Bsp{};
    Rule rule{};
    bool uneven = false;
    double rate = 125e6;
    std::uint64_t seed = 1;
    std::vector<std::vector<Loss>> losses{};       // by group
    std::vector<Join> joins{};                     // the first group ends for the first of them, and so on
    net::Rank most() const {
      return std::accumulate(joins.begin(), joins.end(), members, [](net::Rank all, const Join& join) { return all + join.members; });
    }
  };
  using Rows = std::map<std::pair<std::uint32_t, Key>, std::vector<T>>;

  explicit Groups(const Options& options)
      : options_(options), columns_(options.most() * options.workers_a_member), draw_(options.seed), furthest_(columns_), first_(columns_) {}

  // As each worker reads them in the end.
  Rows run() {
    while (!run_group() && !::testing::Test::HasFailure()) {
    }
    return rows_;
  }
  int losses() const { return losses_; }
  net::Rank members() const { return members_; }   // in the last group
  // By rank, how many shards it holds in the end.
  std::vector<std::size_t> loads() const {
    std::vector<std::size_t> loads(members_);
    for (const auto& of_shard : workers_.front().table.holders()) {
      for (const net::Rank rank : of_shard) ++loads[rank];
    }
    return loads;
  }
  int began_late() const { return began_late_; }   // groups that went on from a clock

 private:
  enum class Doing { reading, adding, ticked, waiting, over };
  struct Worker {
    Table<T> table;
    std::uint32_t local;
    int phase;
    Doing doing = Doing::reading;
    std::optional<std::vector<Key>> keys{};        // of this clock
    std::size_t at = 0, next = 0;                  // of them: waited for, to be added to
    Clock clock() const { return table.clock(); }
  };

  // --- the program
  static constexpr Clock kEnd[kPhases] = {7, 13};
  bool works(std::uint32_t worker, int phase, Clock clock) const {
    if (phase == kPhases) return false;
    const Clock begin = phase == 0 ? 0 : kEnd[phase - 1], most = kEnd[phase] - begin;
    return clock - begin < (options_.uneven ? most * static_cast<Clock>(columns_ - worker) / static_cast<Clock>(columns_) : most);
  }
  T amount(std::uint32_t worker, Clock clock, Key key) const {
    const std::uint64_t drawn = spread(spread(worker * 1000 + static_cast<Key>(clock)) + key);
    if (drawn % 3 != 0) return 0;
    return std::is_integral_v<T> ? static_cast<T>(1 + drawn / 3 % 5) : static_cast<T>(drawn % 1000) / T{7};
  }
  T added_below(std::uint32_t worker, Key key, Clock clock) const {
    T sum = 0;
    for (Clock c = first_[worker]; c < std::min(clock, kEnd[1]); ++c) sum += works(worker, c < kEnd[0] ? 0 : 1, c) ? amount(worker, c, key) : T{0};
    return sum;
  }
  std::vector<Key> keys_of(std::uint32_t w) const {
    std::vector<Key> keys;
    for (Key key = 0; key < kKeptKeys; ++key) {
      if (workers_[w].phase == kPhases || amount(w, workers_[w].clock(), key) != T{0}) keys.push_back(key);
    }
    return keys;
  }

  // --- groups
  // Whether the program is over.
  bool run_group() {
    const std::unique_ptr<net::InprocJob> job_before = std::move(job_);
    std::vector<std::unique_ptr<Tables>> tables_before = std::move(tables_);
    std::vector<bool> is_new = std::exchange(dead_, {});
    for (const net::Rank rank : std::exchange(gone_on_, {})) is_new[rank] = false;
    if (group_ > 0 && group_ <= options_.joins.size()) members_ += options_.joins[group_ - 1].members;
    is_new.resize(members_, true);
    dead_.resize(members_);
    tables_.clear();
    workers_.clear();
    net::ScriptedNetwork network;
    network.seed = options_.seed * 100 + group_;
    network.on_peer_lost = net::OnPeerLost::rejoin;
    network.rate = options_.rate;
    job_ = std::make_unique<net::InprocJob>(members_, network);
    if (group_ < options_.losses.size()) {
      for (const Loss& loss : options_.losses[group_]) {
        job_->at(loss.when, [this, rank = loss.rank] { kill(rank, 300); });
      }
    }
    if (group_ < options_.joins.size()) {
      job_->at(options_.joins[group_].when, [this] { go_on_to_more(); });
    }
    ++group_;
    const TablesOptions of_tables{.servers = options_.servers, .workers_a_member = options_.workers_a_member, .parts = options_.parts,
                                  .disk = [](const std::function<void()>& job) { job(); }, .functions = [](const std::function<void()>& job) { job(); }};
    for (net::Rank rank = 0; rank < members_; ++rank) {
      try {
        tables_.push_back(std::make_unique<Tables>(job_->member(rank), of_tables, is_new[rank] ? nullptr : tables_before[rank].get()));
      } catch (const Error&) {
        if (!dead_[rank]) throw;
        tables_.push_back(nullptr);                // it died before that
      }
    }
    tables_before.clear();
    if (open() && work()) return true;
    job_->run();                                   // until all have heard
    learn_who_holds();
    for (net::Rank rank = 0; rank < members_; ++rank) {
      if (dead_[rank] && !gone_on_.contains(rank)) came_.insert(rank);
    }
    return false;
  }
  bool open() {
    for (std::uint32_t w = 0; w < count(); ++w) {
      const std::uint32_t local = w % options_.workers_a_member;
      if (has_ended(w)) return false;
      try {
        auto table = tables_[rank_of(w)]->worker(local).template open<T>(
            {.name = "t", .width = columns_, .consistency = options_.consistency, .rule = options_.rule});
        workers_.push_back({table, local, table.clock() <= kEnd[0] ? 0 : 1});
      } catch (const Error& error) {
        if (dead_[rank_of(w)]) return false;       // it waits for ever
        EXPECT_TRUE(error.code() == Code::peer_lost && std::ranges::count(dead_, true) > 0) << error.what();
        return false;
      }
    }
    for (const Worker& worker : workers_) EXPECT_EQ(worker.clock(), workers_.front().clock()) << "all begin at one clock";
    for (std::uint32_t w = 0; w < count(); ++w) {
      if (furthest_[w] == 0) first_[w] = workers_.front().clock();
    }
    began_late_ += workers_.front().clock() > 0;
    came_.clear();
    learn_who_holds();
    return true;
  }
  std::uint32_t count() const { return members_ * options_.workers_a_member; }  // of workers
  net::Rank rank_of(std::uint32_t worker) const { return worker / options_.workers_a_member; }
  // It is dead, or knows that somebody is.
  bool has_ended(std::uint32_t worker) const {
    for (net::Rank rank = 0; rank < members_; ++rank) {
      if (dead_[rank] && (rank == rank_of(worker) || job_->member(rank_of(worker)).lost(rank))) return true;
    }
    return false;
  }
  // As soon as that may be, if it may at one of so many looks: somebody else must be known to have what it holds.
  void kill(net::Rank rank, int looks) {
    if (dead_[rank]) return;
    learn_who_holds();
    const auto has_it = [&](net::Rank holder) { return holder != rank && !dead_[holder] && !came_.contains(holder); };
    if (std::ranges::any_of(held_, [&](const auto& holders) { return std::ranges::none_of(holders, has_it); })) {
      if (looks > 1) job_->at(job_->now() - Instant{} + std::chrono::microseconds(100), [this, rank, looks] { kill(rank, looks - 1); });
      return;
    }
    job_->kill(rank);
    dead_[rank] = true;
    ++losses_;
  }
  // Rank 0 hears of those who join, and leaves this group with all that it has; the others hear that it does.
  void go_on_to_more() {
    if (dead_[0]) return;
    job_->kill(0);
    dead_[0] = true;
    gone_on_.insert(0);
  }
  void learn_who_holds() {
    if (workers_.size() < count()) return;
    std::vector<std::set<net::Rank>> held;
    for (std::uint32_t w = 0; w < count(); ++w) {
      if (dead_[rank_of(w)]) continue;
      const auto holders = workers_[w].table.holders();
      held.resize(holders.size());
      for (std::size_t shard = 0; shard < holders.size(); ++shard) held[shard].insert(holders[shard].begin(), holders[shard].end());
    }
    if (!held.empty()) held_ = held;
  }

  // --- work
  // Whether all have read all rows.
  bool work() {
    for (;;) {
      std::vector<std::uint32_t> movable;
      bool over = false;
      const auto look = [&] {
        movable.clear();
        over = true;
        for (std::uint32_t w = 0; w < count(); ++w) {
          if (has_ended(w)) continue;
          over = over && workers_[w].doing == Doing::over;
          if (can_move(w)) movable.push_back(w);
        }
        return !movable.empty() || over;
      };
      const bool goes_on = job_->run(look);
      if (std::ranges::count(dead_, true) > 0 && (over || !goes_on)) return false;
      if (!goes_on) ADD_FAILURE() << "nobody can move, and nothing is on its way";
      if (!goes_on || over) break;
      if (draw_() % 3 == 0) {                      // time passes
        const Instant until = job_->now() + std::chrono::microseconds(draw_() % 400);
        job_->at(until - Instant{}, [] {});
        job_->run([&] { return job_->now() >= until; });
        continue;
      }
      move(movable[draw_() % movable.size()]);
    }
    job_->run();
    if (std::ranges::count(dead_, true) > 0) return false;
    for (const auto& of_shard : workers_.front().table.holders()) EXPECT_EQ(of_shard.size(), 2u) << "all rows have two holders again";
    return true;
  }
  bool can_move(std::uint32_t w) {
    Worker& worker = workers_[w];
    auto& copy = worker.table.copy();
    switch (worker.doing) {
      case Doing::adding: return true;
      case Doing::ticked: return copy.may_go_on(worker.local);
      case Doing::waiting: return copy.flushed(worker.local);
      case Doing::over: return false;
      case Doing::reading: break;
    }
    if (worker.phase < kPhases && !works(w, worker.phase, worker.clock())) return true;
    if (!worker.keys) {
      worker.keys = keys_of(w);
      worker.at = worker.next = 0;
      copy.ask(worker.local, *worker.keys);
    }
    return copy.ready(worker.local, *worker.keys, worker.at);
  }
  void move(std::uint32_t w) {
    Worker& worker = workers_[w];
    auto& copy = worker.table.copy();
    const auto begin_clock = [&] {
      worker.keys.reset();
      worker.doing = Doing::reading;
    };
    switch (worker.doing) {
      case Doing::reading: {
        if (worker.phase < kPhases && !works(w, worker.phase, worker.clock())) {
          worker.table.arrive();
          worker.doing = Doing::waiting;
          break;
        }
        std::vector<T> rows(worker.keys->size() * columns_);
        copy.read(worker.local, *worker.keys, rows);
        for (std::size_t i = 0; i < worker.keys->size(); ++i) check(w, (*worker.keys)[i], std::span(rows).subspan(i * columns_, columns_));
        worker.doing = worker.phase == kPhases ? Doing::over : Doing::adding;
        if (worker.phase < kPhases) furthest_[w] = std::max(furthest_[w], worker.clock() + 1);
        break;
      }
      case Doing::adding: {
        if (worker.next < worker.keys->size()) {
          const Key key = (*worker.keys)[worker.next++];
          std::vector<T> values(columns_);
          values[w] = amount(w, worker.clock(), key);
          copy.add(worker.local, std::span(&key, 1), values);
          break;
        }
        worker.doing = Doing::ticked;
        return copy.tick(worker.local);
      }
      case Doing::ticked: begin_clock(); break;
      case Doing::waiting:
        ++worker.phase;
        begin_clock();
        break;
      case Doing::over: break;
    }
  }
  void check(std::uint32_t reader, Key key, std::span<const T> row) {
    const Clock clock = workers_[reader].clock();
    const bool last = workers_[reader].phase == kPhases;
    if (last) rows_[{reader, key}].assign(row.begin(), row.end());
    if (!std::is_integral_v<T>) return;
    for (std::uint32_t w = 0; w < columns_; ++w) {
      if (w >= count()) {
        EXPECT_EQ(row[w], 0) << "nobody has this column yet";
        continue;
      }
      const bool exact = last || whole_clocks(options_.consistency);
      const Clock age = exact || w == reader ? clock : needed_age(options_.consistency, clock);
      const std::string what = "worker " + std::to_string(reader) + " at clock " + std::to_string(clock) + " reads of worker " + std::to_string(w) + ", row " + std::to_string(key);
      EXPECT_GE(row[w], added_below(w, key, age)) << what;
      EXPECT_LE(row[w], added_below(w, key, exact ? clock : furthest_[w])) << what;
    }
  }

  const Options options_;
  const std::uint32_t columns_;                    // of a row: one for each worker that there will be
  std::mt19937_64 draw_;
  std::size_t group_ = 0;
  int losses_ = 0, began_late_ = 0;
  std::unique_ptr<net::InprocJob> job_;
  std::vector<std::unique_ptr<Tables>> tables_;    // by rank
  net::Rank members_ = options_.members;           // in this group
  std::vector<bool> dead_ = std::vector<bool>(members_, true);  // by rank
  std::set<net::Rank> gone_on_;                    // of these, to the next group
  std::set<net::Rank> came_;                       // in place of others, and before all have opened the table
  std::vector<std::set<net::Rank>> held_;          // by shard, who is known to have it
  std::vector<Worker> workers_;
  std::vector<Clock> furthest_;                    // by worker, behind the last clock that it has ever begun
  std::vector<Clock> first_;                       // by worker, in which it came
  Rows rows_;
};

}  // namespace shoal::table
