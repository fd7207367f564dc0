// Workers of several members on the scripted network, each reading, adding row by row and ticking as its policy lets it; a seed decides who
// moves when, and how long every message takes. An increment adds 1 to the column of its worker, so a row says how many increments of
// each worker it holds, and since those of one worker are seen in order, which ones.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "shoal/net/inproc.h"
#include "shoal/table/tables.h"

namespace shoal::table {

template <class T>
class ScriptedWorkers {
 public:
  struct Options {
    net::Rank members = 3;
    std::uint32_t workers_a_member = 1;
    Consistency consistency = Ssp{2};
    Clock clocks = 12;
    Key keys = 20;
    std::uint64_t seed = 1;           // of the network and of who moves
    std::vector<net::Rank> servers, workers;  // none: all members
    bool uneven = false;              // later workers have fewer clocks; who is done waits at the barrier
    std::size_t width = 0;            // of a row, at least
    net::ScriptedNetwork network{};
    bool pauses = true;               // some workers are slow for a while
    Encoding encoding = Encoding::none;
    bool ones = std::is_integral_v<T>;  // what is added, or else fractions
    bool remainder = false;           // who is done adds something more, of no whole clock, before it waits at the barrier
    std::vector<std::pair<net::Rank, Nanoseconds>> kills;  // members that die, and when; the others go on
  };
  using Check = std::function<void(std::uint32_t worker, Clock clock, Key key, std::span<const T> row)>;

  explicit ScriptedWorkers(const Options& options)
      : options_(options), job_(options.members, seeded(options)), moves_(options.seed), dead_(options.members) {
    if (options_.workers.empty()) {
      for (net::Rank rank = 0; rank < options.members; ++rank) options_.workers.push_back(rank);
    }
    const TablesOptions of_tables{.servers = options.servers, .workers = options_.workers, .workers_a_member = options.workers_a_member,
                                  .disk = [](const std::function<void()>& job) { job(); }, .functions = [](const std::function<void()>& job) { job(); }};
    for (net::Rank rank = 0; rank < options.members; ++rank) tables_.push_back(std::make_unique<Tables>(job_.member(rank), of_tables));
    const auto count = static_cast<std::uint32_t>(options_.workers.size()) * options.workers_a_member;
    for (std::uint32_t worker = 0; worker < count; ++worker) {
      const std::uint32_t local = worker % options.workers_a_member;
      auto table = tables_[options_.workers[worker / options.workers_a_member]]->worker(local).template open<T>(
          {.name = "counts", .width = width_ = std::max<std::size_t>(count, options.width), .consistency = options.consistency,
           .encoding = options.encoding});
      const Clock clocks = options.uneven ? options.clocks * static_cast<Clock>(count - worker) / static_cast<Clock>(count) : options.clocks;
      workers_.push_back({table, std::mt19937_64(1000 + worker), 0, clocks, {}, {}, {}, 0, 0, false, local});
      added_.emplace_back(static_cast<std::size_t>(options.clocks) + 1, std::vector<T>(options.keys, 0));
      if (clocks == 0) table.arrive();
    }
  }
  ~ScriptedWorkers() { tables_.clear(); }
  bool is_dead(std::uint32_t worker) const { return dead_[options_.workers[worker / options_.workers_a_member]]; }

  std::uint32_t size() const { return static_cast<std::uint32_t>(workers_.size()); }
  // How much `worker` had added to `key` with timestamps below `clock`.
  T added(std::uint32_t worker, Key key, Clock clock) const {
    T sum = 0;
    for (Clock c = 0; c < std::min(clock, options_.clocks + 1); ++c) sum += added_[worker][static_cast<std::size_t>(c)][key];
    return sum;
  }
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
  std::uint64_t waits() const { return waits_; }  // how often a worker could have moved, but might not add

  bool is_done(std::uint32_t worker) const { return workers_[worker].done == workers_[worker].clocks; }

  static constexpr Clock kOver = kLastClock;
  // Until all have completed their clocks and met at a barrier. check() is called for each row that is read, and then again with clock kOver.
  void run(const Check& check) {
    const auto movable = [&] {
      for (std::uint32_t w = 0; w < size(); ++w) {
        if (can_move(w)) return true;
      }
      return false;
    };
    const auto finished = [&] {
      for (std::uint32_t w = 0; w < size(); ++w) {
        if (!is_dead(w) && !is_done(w)) return false;
      }
      return true;
    };
    for (const auto& kill : options_.kills) {
      job_.at(kill.second, [this, rank = kill.first] {
        job_.kill(rank);
        dead_[rank] = true;
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
      move(worker, check);
    }
    const auto met = [&] {
      for (std::uint32_t w = 0; w < size(); ++w) {
        if (!is_dead(w) && !workers_[w].table.copy().flushed(workers_[w].local)) return false;
      }
      return true;
    };
    ASSERT_TRUE(job_.run(met)) << "some wait at the barrier for ever";
    std::vector<Key> keys(options_.keys);
    std::iota(keys.begin(), keys.end(), Key{0});
    for (std::uint32_t w = 0; w < size(); ++w) {
      if (is_dead(w)) continue;
      workers_[w].wanted = keys;
      workers_[w].at = 0;
      auto& copy = workers_[w].table.copy();
      ASSERT_TRUE(job_.run([&] { return is_dead(w) || copy.ready(workers_[w].local, keys, workers_[w].at); }));
      if (!is_dead(w)) show(w, kOver, check);
    }
  }

 private:
  struct Moving {
    Table<T> table;
    std::mt19937_64 random;           // what it does; the same whatever the network does
    Clock done, clocks;               // of its clocks
    std::vector<Key> wanted;          // being read, and then added to
    std::vector<T> amounts;           // of `wanted`
    std::vector<T> values;
    std::size_t at, next;             // in `wanted`: being read, to be added to
    bool shown;                       // it has been read
    std::uint32_t local;              // its number in its member
  };

  static net::ScriptedNetwork seeded(const Options& options) {
    net::ScriptedNetwork network = options.network;
    network.seed = options.seed;
    if (!options.kills.empty()) network.on_peer_lost = net::OnPeerLost::shrink;
    return network;
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
    if (worker.done == worker.clocks || is_dead(w)) return false;
    if (!copy.may_go_on(worker.local)) return false;
    if (worker.wanted.empty()) {
      for (int i = 0; i < 4; ++i) worker.wanted.push_back(worker.random() % options_.keys);
      worker.amounts.clear();
      for (int i = 0; i < 4; ++i) worker.amounts.push_back(amount(worker));
      worker.at = worker.next = 0;
      worker.shown = false;
      copy.ask(worker.local, worker.wanted);
    }
    if (!worker.shown) return copy.ready(worker.local, worker.wanted, worker.at);
    if (worker.next == worker.wanted.size()) return true;
    if (copy.may_add(worker.local, std::span(&worker.wanted[worker.next], 1), increment(w))) return true;
    ++waits_;
    return false;
  }
  // Of its next row.
  std::vector<T> increment(std::uint32_t w) const {
    std::vector<T> ones(width_);
    ones[w] = workers_[w].amounts[workers_[w].next];
    return ones;
  }
  void show(std::uint32_t w, Clock clock, const Check& check) {
    Moving& worker = workers_[w];
    worker.values.resize(worker.wanted.size() * width_);
    worker.table.copy().read(worker.local, worker.wanted, worker.values);
    for (std::size_t i = 0; i < worker.wanted.size(); ++i) {
      check(w, clock, worker.wanted[i], std::span<const T>(worker.values).subspan(i * width_, width_));
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
      std::vector<T> ones(width_);
      ones[w] = added_[w][static_cast<std::size_t>(worker.done)][key] = 1;
      worker.table.copy().add(worker.local, std::span(&key, 1), ones);
    }
    worker.table.arrive();
      return;
    }
    const Key key = worker.wanted[worker.next];
    worker.table.copy().add(worker.local, std::span(&key, 1), increment(w));
    added_[w][static_cast<std::size_t>(worker.done)][key] += worker.amounts[worker.next++];
    if (worker.random() % 3 == 0) check_own(w, key);
  }
  T amount(Moving& worker) {
    if (options_.ones) return 1;
    return static_cast<T>(worker.random() % 1000) / T{7};
  }
  void check_own(std::uint32_t w, Key key) {
    if (!options_.ones) return;
    if (const auto row = peek(w, key)) {
      EXPECT_EQ((*row)[w], added(w, key, workers_[w].done + 1)) << "own increments, at once";
    }
  }

  Options options_;
  std::size_t width_ = 0;             // of a row
  net::InprocJob job_;
  std::mt19937_64 moves_;
  std::vector<bool> dead_;            // by rank
  std::vector<std::unique_ptr<Tables>> tables_;
  std::vector<Moving> workers_;
  std::uint64_t waits_ = 0;
  std::vector<std::vector<std::vector<T>>> added_;  // by worker, clock and key
};

}  // namespace shoal::table
