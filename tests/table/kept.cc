// Members die and others come in their places, group after group, each on a scripted network of its own: every increment counts once, whoever was lost
// when, and bulk-synchronous workers end with the bits of a run that nobody disturbed. What a worker does in a clock is a function of its number and
// the clock. SHOAL_SEEDS widens the search, SHOAL_FIRST_SEED begins it elsewhere.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "shoal/core/error.h"
#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"
#include "tests/from_environment.h"

namespace shoal::table {
namespace {

constexpr Key kKeptKeys = 12;
constexpr int kPhases = 2;

struct Loss {
  net::Rank rank;
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
    Consistency consistency = Bsp{};
    Rule rule{};
    bool uneven = false;
    double rate = 125e6;
    std::uint64_t seed = 1;
    std::vector<std::vector<Loss>> losses{};       // by group
  };
  using Rows = std::map<std::pair<std::uint32_t, Key>, std::vector<T>>;

  explicit Groups(const Options& options)
      : options_(options), count_(options.members * options.workers_a_member), draw_(options.seed), dead_(options.members, true), furthest_(count_) {}

  // As each worker reads them in the end.
  Rows run() {
    while (!run_group() && !::testing::Test::HasFailure()) {
    }
    return rows_;
  }
  int losses() const { return losses_; }
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
    return clock - begin < (options_.uneven ? most * static_cast<Clock>(count_ - worker) / static_cast<Clock>(count_) : most);
  }
  T amount(std::uint32_t worker, Clock clock, Key key) const {
    const std::uint64_t drawn = spread(spread(worker * 1000 + static_cast<Key>(clock)) + key);
    if (drawn % 3 != 0) return 0;
    return std::is_integral_v<T> ? static_cast<T>(1 + drawn / 3 % 5) : static_cast<T>(drawn % 1000) / T{7};
  }
  T added_below(std::uint32_t worker, Key key, Clock clock) const {
    T sum = 0;
    for (Clock c = 0; c < std::min(clock, kEnd[1]); ++c) sum += works(worker, c < kEnd[0] ? 0 : 1, c) ? amount(worker, c, key) : T{0};
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
    const std::vector<bool> is_new = std::exchange(dead_, std::vector<bool>(options_.members, false));
    tables_.clear();
    workers_.clear();
    net::ScriptedNetwork network;
    network.seed = options_.seed * 100 + group_;
    network.on_peer_lost = net::OnPeerLost::rejoin;
    network.rate = options_.rate;
    job_ = std::make_unique<net::InprocJob>(options_.members, network);
    if (group_ < options_.losses.size()) {
      for (const Loss& loss : options_.losses[group_]) {
        job_->at(loss.when, [this, rank = loss.rank] { kill(rank, 300); });
      }
    }
    ++group_;
    const TablesOptions of_tables{.servers = options_.servers, .workers_a_member = options_.workers_a_member,
                                  .disk = [](const std::function<void()>& job) { job(); }, .functions = [](const std::function<void()>& job) { job(); }};
    for (net::Rank rank = 0; rank < options_.members; ++rank) {
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
    for (net::Rank rank = 0; rank < options_.members; ++rank) {
      if (dead_[rank]) came_.insert(rank);
    }
    return false;
  }
  bool open() {
    for (std::uint32_t w = 0; w < count_; ++w) {
      const std::uint32_t local = w % options_.workers_a_member;
      if (has_ended(w)) return false;
      try {
        auto table = tables_[rank_of(w)]->worker(local).template open<T>(
            {.name = "t", .width = count_, .consistency = options_.consistency, .rule = options_.rule});
        workers_.push_back({table, local, table.clock() <= kEnd[0] ? 0 : 1});
      } catch (const Error& error) {
        if (dead_[rank_of(w)]) return false;       // it waits for ever
        EXPECT_TRUE(error.code() == Code::peer_lost && std::ranges::count(dead_, true) > 0) << error.what();
        return false;
      }
    }
    for (const Worker& worker : workers_) EXPECT_EQ(worker.clock(), workers_.front().clock()) << "all begin at one clock";
    began_late_ += workers_.front().clock() > 0;
    came_.clear();
    learn_who_holds();
    return true;
  }
  net::Rank rank_of(std::uint32_t worker) const { return worker / options_.workers_a_member; }
  // It is dead, or knows that somebody is.
  bool has_ended(std::uint32_t worker) const {
    for (net::Rank rank = 0; rank < options_.members; ++rank) {
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
  void learn_who_holds() {
    if (workers_.size() < count_) return;
    std::vector<std::set<net::Rank>> held;
    for (std::uint32_t w = 0; w < count_; ++w) {
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
        for (std::uint32_t w = 0; w < count_; ++w) {
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
        std::vector<T> rows(worker.keys->size() * count_);
        copy.read(worker.local, *worker.keys, rows);
        for (std::size_t i = 0; i < worker.keys->size(); ++i) check(w, (*worker.keys)[i], std::span(rows).subspan(i * count_, count_));
        worker.doing = worker.phase == kPhases ? Doing::over : Doing::adding;
        if (worker.phase < kPhases) furthest_[w] = std::max(furthest_[w], worker.clock() + 1);
        break;
      }
      case Doing::adding: {
        if (worker.next < worker.keys->size()) {
          const Key key = (*worker.keys)[worker.next++];
          std::vector<T> values(count_);
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
    for (std::uint32_t w = 0; w < count_; ++w) {
      const bool exact = last || whole_clocks(options_.consistency);
      const Clock age = exact || w == reader ? clock : needed_age(options_.consistency, clock);
      const std::string what = "worker " + std::to_string(reader) + " at clock " + std::to_string(clock) + " reads of worker " + std::to_string(w) + ", row " + std::to_string(key);
      EXPECT_GE(row[w], added_below(w, key, age)) << what;
      EXPECT_LE(row[w], added_below(w, key, exact ? clock : furthest_[w])) << what;
    }
  }

  const Options options_;
  const std::uint32_t count_;                      // of workers
  std::mt19937_64 draw_;
  std::size_t group_ = 0;
  int losses_ = 0, began_late_ = 0;
  std::unique_ptr<net::InprocJob> job_;
  std::vector<std::unique_ptr<Tables>> tables_;    // by rank
  std::vector<bool> dead_;                         // by rank
  std::set<net::Rank> came_;                       // in place of others, and before all have opened the table
  std::vector<std::set<net::Rank>> held_;          // by shard, who is known to have it
  std::vector<Worker> workers_;
  std::vector<Clock> furthest_;                    // by worker, behind the last clock that it has ever begun
  Rows rows_;
};

template <class T>
typename Groups<T>::Options drawn(std::uint64_t seed, const Consistency& consistency) {
  std::mt19937_64 draw(seed);
  typename Groups<T>::Options options;
  options.consistency = consistency;
  options.seed = seed;
  options.members = static_cast<net::Rank>(2 + draw() % 4);
  options.workers_a_member = static_cast<std::uint32_t>(1 + draw() % 3 / 2);
  options.uneven = draw() % 2 == 0;
  if (options.members > 2 && draw() % 4 == 0) options.servers = {0, options.members - 1};
  if (draw() % 3 == 0) options.rate = 1e5;         // who dies has not sent all that it said
  for (std::uint64_t group = 0, groups = 1 + draw() % 3; group < groups; ++group) {
    auto& losses = options.losses.emplace_back();
    const std::uint64_t longest = draw() % 4 == 0 ? 1'000 : 25'000;
    for (std::uint64_t left = 1 + draw() % 2; left > 0; --left) {
      losses.push_back({static_cast<net::Rank>(draw() % options.members), std::chrono::microseconds(draw() % longest)});
    }
  }
  return options;
}

const std::vector<Consistency> kAllKept{Bsp{}, Ssp{0}, Ssp{2}, Essp{0}, Essp{2}, Dssp{0, 3}};

// The counts of one process that does all workers' clocks.
TEST(Kept, every_increment_counts_once_whoever_is_replaced) {
  int losses = 0, began_late = 0, runs = 0;
  for (const std::uint64_t seed : seeds(500)) {
    const Consistency& consistency = drawn_from(kAllKept, seed);
    SCOPED_TRACE(name(consistency) + ", seed " + std::to_string(seed));
    Groups<std::int64_t> groups(drawn<std::int64_t>(seed, consistency));
    groups.run();
    losses += groups.losses();
    began_late += groups.began_late();
    ++runs;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(losses, runs) << "few were lost";
  EXPECT_GT(began_late, runs / 2) << "few began in the middle";
}

// Sums that round, by a rule with a state: the bits say whether anything was done twice, left out or done in another order.
TEST(Kept, bulk_synchronous_workers_leave_no_trace_of_losses) {
  for (const std::uint64_t seed : seeds(60)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = drawn<double>(seed, Bsp{});
    if (seed % 2 == 0) options.rule = Rule::adagrad(0.5);
    const auto disturbed = Groups<double>(options).run();
    options.losses.clear();
    EXPECT_EQ(disturbed, Groups<double>(options).run());
  }
}

}  // namespace
}  // namespace shoal::table
