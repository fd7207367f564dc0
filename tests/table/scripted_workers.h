// Workers of several members on the scripted network, each reading, adding row by row and ticking as its policy lets it; a seed decides who
// moves when, and how long every message takes. An increment adds 1 to the column of its worker, so a row says how many increments of
// each worker it holds, and since those of one worker are seen in order, which ones; in others it says that of each it has all (spread_increments.h).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <type_traits>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"
#include "tests/table/living_views.h"
#include "tests/table/scripted_options.h"

namespace shoal::table {

template <class T>
class ScriptedWorkers {
 public:
  using Options = ScriptedOptions;
  using Check = std::function<void(std::uint32_t worker, Clock clock, Key key, std::span<const T> row)>;

  explicit ScriptedWorkers(const Options& options)
      : options_(options), job_(options.members, seeded(options)), moves_(options.seed), dead_(options.members), departed_(options.members) {
    if (options_.workers.empty()) {
      for (net::Rank rank = 0; rank < options.members; ++rank) options_.workers.push_back(rank);
    }
    const TablesOptions of_tables{.servers = options.servers, .workers = options_.workers, .workers_a_member = options.workers_a_member, .parts = options.parts,
                                  .disk = [](const std::function<void()>& job) { job(); }, .functions = [](const std::function<void()>& job) { job(); }, .most_under_way = options.most_under_way, .most_copies = options.most_copies};
    for (net::Rank rank = 0; rank < options.members; ++rank) tables_.push_back(std::make_unique<Tables>(job_.member(rank), of_tables));
    const auto count = static_cast<std::uint32_t>(options_.workers.size()) * options.workers_a_member;
    increments_.emplace(width_ = std::max<std::size_t>(count, options.width), count, options.spread);
    for (std::uint32_t worker = 0; worker < count; ++worker) {
      const std::uint32_t local = worker % options.workers_a_member;
      auto table = tables_[options_.workers[worker / options.workers_a_member]]->worker(local).template open<T>(
          {.name = "counts", .width = width_, .consistency = options.consistency, .rule = options.rule, .encoding = options.encoding});
      const Clock even = worker < options.clocks_of.size() ? options.clocks_of[worker] : options.clocks;
      const Clock clocks = options.uneven ? options.clocks * static_cast<Clock>(count - worker) / static_cast<Clock>(count) : even;
      workers_.push_back({table, std::mt19937_64(1000 + worker), 0, clocks, {}, {}, {}, {}, 0, 0, false, local});
      added_.emplace_back(static_cast<std::size_t>(options.clocks) + 1, std::vector<T>(options.keys, 0));
      if (clocks == 0) table.arrive();
    }
    issued_.resize(count);
    known_.resize(count);
    seen_.assign(count, std::vector<std::vector<T>>(options.keys, std::vector<T>(count)));
  }
  ~ScriptedWorkers() {
    workers_.clear();
    tables_.clear();
    views_.end_all();
  }
  net::Rank rank_of(std::uint32_t worker) const { return options_.workers[worker / options_.workers_a_member]; }
  Key keys() const { return options_.keys; }
  bool is_dead(std::uint32_t worker) const { return dead_[rank_of(worker)]; }
  bool has_departed(std::uint32_t worker) const { return departed_[rank_of(worker)]; }

  std::uint32_t size() const { return static_cast<std::uint32_t>(workers_.size()); }
  // What `worker` had made of `key` with what it added with timestamps below `clock`, each clock by itself where the table's rule steps.
  T added(std::uint32_t worker, Key key, Clock clock) const {
    T sum = 0;
    std::vector<T> state(state_width(options_.rule, 1));
    for (Clock c = 0; c < std::min(clock, options_.clocks + 1); ++c) {
      const T amount = added_[worker][static_cast<std::size_t>(c)][key];
      if constexpr (std::is_floating_point_v<T>) {
        if (options_.rule.steps()) {
          step<T>(options_.rule, std::span(&sum, 1), state, std::span(&amount, 1), 1);
          continue;
        }
      }
      sum += amount;
    }
    return sum;
  }
  // The keys that it added to, in order.
  const std::vector<Key>& issued(std::uint32_t worker) const { return issued_[worker]; }
  Tables& tables(net::Rank rank) { return *tables_[rank]; }
  Table<T>& table(std::uint32_t worker) { return workers_[worker].table; }
  Clock clock(std::uint32_t worker) const { return workers_[worker].done; }

  // What that worker would read now; nullopt if it would have to wait.
  std::optional<std::vector<T>> peek(std::uint32_t w, Key key) {
    std::vector<T> row(width_);
    std::size_t at = 0;
    auto& copy = workers_[w].table.copy();
    if (!copy.ready(workers_[w].local, std::span(&key, 1), at)) return std::nullopt;
    copy.read(workers_[w].local, std::span(&key, 1), row);
    return row;
  }
  // That at each server, at one moment, the rows hold of each worker the first of its increments to them, all rows up to the same one (invariant I3
  // across rows). Copies of rows are of several moments: across them order is that of clocks alone.
  void expect_order_at_servers(std::uint32_t reader) {
    const Placement placement(servers(), 1, {}, options_.parts);
    std::vector<std::vector<Key>> of_shard(placement.shards());
    for (Key key = 0; key < options_.keys; ++key) of_shard[placement.shard_of(key)].push_back(key);
    for (const std::vector<Key>& keys : of_shard) {  // so few that one message answers
      Table<T>& table = workers_[reader].table;
      std::vector<T> rows(keys.size() * table.full_width());
      table.fetch(keys, rows);
      std::vector<bool> here(options_.keys, false);
      for (const Key key : keys) here[key] = true;
      std::vector<T> left(options_.keys);           // of what the rows hold
      for (std::uint32_t worker = 0; worker < size(); ++worker) {
        T total = 0;
        for (std::size_t i = 0; i < keys.size(); ++i) total += left[keys[i]] = rows[i * table.full_width() + worker];
        for (const Key key : issued_[worker]) {
          if (!here[key] || total == 0) continue;
          EXPECT_GT(left[key], 0) << "of worker " << worker << " an increment of row " << key << " is lacking, and later ones of other rows are there";
          --left[key];
          --total;
        }
        EXPECT_EQ(total, 0) << "of worker " << worker;
      }
    }
  }
  int deaths() const { return deaths_; }
  std::uint64_t waits() const { return waits_; }  // how often a worker could have moved, but might not add

  bool is_done(std::uint32_t worker) const { return workers_[worker].done == workers_[worker].clocks; }
  static constexpr Clock kOver = kLastClock;
  // Until all have completed their clocks and met at a barrier. check() is called for each row that is read, and then again with clock kOver; each(), if
  // there is one, whenever a message has come.
  void run(const Check& check, const std::function<void()>& each = {}) {
    const auto movable = [&] {
      if (each) each();
      for (std::uint32_t w = 0; w < size(); ++w) {
        if (can_move(w)) return true;
      }
      return false;
    };
    const auto finished = [&] {
      for (std::uint32_t w = 0; w < size(); ++w) {
        if (is_here(w) && !is_done(w)) return false;
      }
      return true;
    };
    for (const auto& death : options_.kills) {
      job_.at(death.second, [this, rank = death.first] { kill(rank, 1000); });
    }
    for (const auto& departure : options_.departures) {
      job_.at(departure.second, [this, rank = departure.first] {
        if (dead_[rank]) return;
        departed_[rank] = true;
        tables_[rank]->depart_begin();
      });
    }
    for (const auto& move : options_.moves) {
      job_.at(move.when, [this, move] {
        for (std::uint32_t w = 0; w < size(); ++w) {
          if (is_here(w)) return workers_[w].table.copy().move(move.shard, move.to);
        }
      });
    }
    while (!finished()) {
      ASSERT_TRUE(job_.run([&] { return movable() || finished(); })) << "nobody can move, and nothing is on its way: " << stuck();
      if (finished()) break;
      std::uint32_t worker = static_cast<std::uint32_t>(moves_() % size());
      while (!can_move(worker)) worker = (worker + 1) % size();
      if (options_.pauses && moves_() % 4 != 0) {  // time passes instead
        const Instant until = job_.now() + std::chrono::microseconds(moves_() % 500);
        job_.at(until - Instant{}, [] {});
        job_.run([&] { return job_.now() >= until; });
      }
      if (is_here(worker)) move(worker, check);
    }
    const auto met = [&] {
      for (std::uint32_t w = 0; w < size(); ++w) {
        if (is_here(w) && !workers_[w].table.copy().flushed(workers_[w].local)) return false;
      }
      return true;
    };
    ASSERT_TRUE(job_.run(met)) << "some wait at the barrier for ever";
    std::vector<Key> keys(options_.keys);
    std::iota(keys.begin(), keys.end(), Key{0});
    for (std::uint32_t w = 0; w < size(); ++w) {
      if (!is_here(w)) continue;
      workers_[w].wanted = keys;
      workers_[w].at = 0;
      auto& copy = workers_[w].table.copy();
      ASSERT_TRUE(job_.run([&] { return !is_here(w) || copy.ready(workers_[w].local, keys, workers_[w].at); }));
      if (is_here(w)) show(w, kOver, check);
    }
    job_.run();
    for (const auto& [rank, when] : options_.departures) EXPECT_TRUE(dead_[rank] || !departed_[rank] || tables_[rank]->departed()) << "rank " << rank << " holds rows still";
    expect_enough_holders();
  }

 private:
  struct Moving {
    Table<T> table;
    std::mt19937_64 random;           // what it does; the same whatever the network does
    Clock done, clocks;               // of its clocks
    std::vector<Key> wanted;          // being read, and then added to
    std::vector<T> amounts;           // of `wanted`
    std::vector<T> values;
    std::vector<T> increment;         // of wanted[next]
    std::size_t at, next;             // in `wanted`: being read, to be added to
    bool shown;                       // it has been read
    std::uint32_t local;              // its number in its member
  };

  static net::ScriptedNetwork seeded(const Options& options) {
    net::ScriptedNetwork network = options.network;
    network.seed = options.seed;
    if (!options.kills.empty() || !options.moves.empty() || !options.departures.empty()) network.on_peer_lost = net::OnPeerLost::shrink;
    return network;
  }
  std::vector<net::Rank> servers() const {
    std::vector<net::Rank> servers = options_.servers;
    for (net::Rank rank = 0; options_.servers.empty() && rank < options_.members; ++rank) servers.push_back(rank);
    return servers;
  }
  bool is_here(std::uint32_t worker) const { return !is_dead(worker) && !has_departed(worker); }
  // All that live agree on who holds what: as many as there can be, none that is dead.
  void expect_enough_holders() {
    const std::vector<net::Rank> servers = this->servers();
    const auto living = static_cast<std::size_t>(std::ranges::count_if(servers, [this](net::Rank rank) { return !dead_[rank] && !departed_[rank]; }));
    const std::size_t wanted = std::min<std::size_t>(living, seeded(options_).on_peer_lost == net::OnPeerLost::shrink ? 2 : 1);
    std::optional<std::vector<std::vector<net::Rank>>> agreed;
    for (std::uint32_t w = 0; w < size(); ++w) {
      if (!is_here(w)) continue;
      const auto holders = workers_[w].table.copy().holders();
      if (!agreed) agreed = holders;
      EXPECT_EQ(holders, *agreed) << "worker " << w << " knows other holders";
      for (const auto& of_shard : holders) {
        EXPECT_EQ(of_shard.size(), wanted);
        EXPECT_TRUE(std::ranges::none_of(of_shard, [this](net::Rank rank) { return dead_[rank] || departed_[rank]; }));
      }
    }
  }
  // As soon as that may be, if it may at one of so many looks.
  void kill(net::Rank rank, int looks) {
    if (options_.spares_last_holders && is_needed(rank)) {
      if (looks > 1) job_.at(job_.now() - Instant{} + std::chrono::microseconds(100), [this, rank, looks] { kill(rank, looks - 1); });
      return;
    }
    job_.kill(rank);
    dead_[rank] = true;
    ++deaths_;
  }
  // Whether nobody who lives knows another one that lives and has all of some shard; what one of them knows is true.
  bool is_needed(net::Rank rank) {
    std::set<std::pair<std::size_t, net::Rank>> known;
    bool works = false;
    for (std::uint32_t w = 0; w < size(); ++w) {
      if (!is_here(w) || rank_of(w) == rank) continue;
      works = true;
      const auto holders = workers_[w].table.copy().holders();
      for (std::size_t shard = 0; shard < holders.size(); ++shard) {
        for (const net::Rank holder : holders[shard]) {
          if (holder != rank && !dead_[holder] && !departed_[holder]) known.emplace(shard, holder);
        }
      }
    }
    std::set<std::size_t> shards;
    for (const auto& [shard, holder] : known) shards.insert(shard);
    return !works || shards.size() < workers_[0].table.copy().holders().size();
  }
  std::string stuck() {
    std::string all;
    for (std::uint32_t w = 0; w < size(); ++w) {
      Moving& worker = workers_[w];
      all += "\nworker " + std::to_string(w) + " at clock " + std::to_string(worker.done);
      if (worker.done == worker.clocks) continue;
      if (!worker.table.copy().may_go_on(worker.local)) {
        all += " is too far ahead";
      } else if (worker.shown) {
        all += " may not add to row " + std::to_string(worker.wanted.at(worker.next));
      } else {
        all += " waits for row " + std::to_string(worker.wanted.at(worker.at));
      }
    }
    return all;
  }
  bool can_move(std::uint32_t w) {
    Moving& worker = workers_[w];
    auto& copy = worker.table.copy();
    if (worker.done == worker.clocks || !is_here(w)) return false;
    if (!copy.may_go_on(worker.local)) return false;
    if (worker.wanted.empty()) {
      for (int i = 0; i < 4; ++i) worker.wanted.push_back(worker.random() % options_.keys);
      worker.amounts.clear();
      for (int i = 0; i < 4; ++i) worker.amounts.push_back(amount(worker));
      worker.at = worker.next = 0;
      worker.shown = false;
      worker.increment = increments_->of(w, worker.amounts[0]);
      if (options_.intends) intend(worker);
      copy.ask(worker.local, worker.wanted);
    }
    if (!worker.shown) return copy.ready(worker.local, worker.wanted, worker.at);
    if (worker.next == worker.wanted.size()) return true;
    if (copy.may_add(worker.local, std::span(&worker.wanted[worker.next], 1), worker.increment)) return true;
    ++waits_;
    return false;
  }
  // Some rows for the clock at hand and up to two more, those that it is about to read, and others.
  void intend(Moving& worker) {
    std::vector<Key> keys{worker.wanted[0], worker.wanted[1]};
    for (int i = 0; i < 4; ++i) keys.push_back(worker.random() % options_.keys);
    worker.table.copy().ask(worker.local, keys, static_cast<Clock>(worker.random() % 3));
  }
  // Every other time by a view, which then lives for a while, and some longer than their tables.
  void show(std::uint32_t w, Clock clock, const Check& check) {
    Moving& worker = workers_[w];
    worker.values.resize(worker.wanted.size() * width_);
    if (++shows_ % 2 == 0) {
      worker.table.copy().read(worker.local, worker.wanted, worker.values);
    } else {
      views_.begin(worker.table.copy().view(worker.local, worker.wanted), worker.values);
    }
    look_at_holders(w);
    for (std::size_t i = 0; i < worker.wanted.size(); ++i) {
      const auto row = std::span<const T>(worker.values).subspan(i * width_, width_);
      see(w, worker.wanted[i], row);
      increments_->expect_whole(row, options_.ones.value_or(std::is_integral_v<T>) && !options_.rule.steps());
      check(w, clock, worker.wanted[i], row);
    }
  }
  // Another holder may lack what is on its way to it still: what was seen does not bind it.
  void look_at_holders(std::uint32_t reader) {
    auto holders = workers_[reader].table.copy().holders();
    if (holders == known_[reader]) return;
    handed_on_ = handed_on_ || !known_[reader].empty();
    known_[reader] = std::move(holders);
    for (auto& of_key : seen_[reader]) std::ranges::fill(of_key, options_.rule.steps() ? std::numeric_limits<T>::max() : T{0});
  }
  // Of who lives nobody sees less than before (invariant I3); where a rule steps, that is more.
  void see(std::uint32_t reader, Key key, std::span<const T> row) {
    std::vector<T>& before = seen_[reader][key];
    for (std::uint32_t other = 0; options_.ones.value_or(std::is_integral_v<T>) && other < size(); ++other) {
      const bool less = options_.rule.steps() ? row[other] > before[other] : row[other] < before[other];
      EXPECT_FALSE(less && is_here(other) && !(options_.rule.steps() && handed_on_)) << "reader " << reader << " saw " << before[other] << " of worker " << other << " in row " << key << ", and then " << row[other];
      before[other] = row[other];
    }
  }
  void move(std::uint32_t w, const Check& check) {
    Moving& worker = workers_[w];
    if (!worker.shown) {
      show(w, worker.done, check);
      worker.shown = true;
      return;
    }
    if (worker.next == worker.wanted.size()) {
      worker.wanted.clear();
      worker.table.copy().tick(worker.local);
      if (++worker.done < worker.clocks) return;
      if (options_.remainder) {
        const Key key = worker.random() % options_.keys;
        added_[w][static_cast<std::size_t>(worker.done)][key] = 1;
        issued_[w].push_back(key);
        worker.table.copy().add(worker.local, std::span(&key, 1), increments_->of(w, 1));
      }
      worker.table.arrive();
      return;
    }
    const Key key = worker.wanted[worker.next];
    worker.table.copy().add(worker.local, std::span(&key, 1), worker.increment);
    added_[w][static_cast<std::size_t>(worker.done)][key] += worker.amounts[worker.next++];
    if (worker.next < worker.wanted.size()) worker.increment = increments_->of(w, worker.amounts[worker.next]);
    issued_[w].push_back(key);
    if (worker.random() % 3 == 0) check_own(w, key);
  }
  T amount(Moving& worker) {
    if (options_.ones.value_or(std::is_integral_v<T>)) return 1;
    return static_cast<T>(worker.random() % 1000) / T{7};
  }
  void check_own(std::uint32_t w, Key key) {
    if (options_.rule.steps() || !options_.ones.value_or(std::is_integral_v<T>)) return;
    if (const auto row = peek(w, key)) {
      EXPECT_EQ((*row)[w], added(w, key, workers_[w].done + 1)) << "own increments, at once";
    }
  }

  Options options_;
  std::size_t width_ = 0;             // of a row
  std::optional<SpreadIncrements<T>> increments_;
  net::InprocJob job_;
  std::mt19937_64 moves_;
  std::vector<bool> dead_, departed_;  // by rank
  std::vector<std::unique_ptr<Tables>> tables_;
  std::vector<Moving> workers_;
  LivingViews<T> views_;
  std::uint64_t shows_ = 0;
  std::uint64_t waits_ = 0;
  int deaths_ = 0;
  std::vector<std::vector<std::vector<T>>> added_;  // by worker, clock and key
  std::vector<std::vector<Key>> issued_;            // by worker
  std::vector<std::vector<std::vector<net::Rank>>> known_;  // by worker: who holds which shard, when it read last
  bool handed_on_ = false;                          // these have changed
  std::vector<std::vector<std::vector<T>>> seen_;   // by reader, key and worker: what it read last
};

}  // namespace shoal::table
