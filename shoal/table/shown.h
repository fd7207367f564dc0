// What the gradients of a row had summed to when a reader was sent it: with which values a gradient was computed, for a rule that revises its
// earlier steps (rule.h, adaptive revision).
//
// Nothing of it travels with the rows. Both ends count the messages of rows that a server sends to a reader; an update says how many its worker
// had when it read, and the server has kept what was in them. What no worker of that member can have computed with any more is forgotten, and of
// one row at most kMost states are kept for a reader: beyond that the second oldest goes, for a worker that takes so long has read the oldest.
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "shoal/table/workers.h"

namespace shoal::table {

template <class T>
class Shown {
 public:
  static constexpr std::size_t kMost = 16;

  Shown(net::Rank members, const Workers& workers) : workers_(workers), readers_(members), heard_(workers.size()) {}

  void begins_message(net::Rank reader) { ++readers_[reader].messages; }
  // In the message that has begun; sums: of the row's gradients by now.
  void sends(net::Rank reader, std::uint32_t number, std::span<const T> sums) {
    Reader& to = readers_[reader];
    States& states = to.rows[number];
    const std::uint64_t least = least_heard(reader);
    while (states.size() > 1 && states[1].message <= least) states.erase(states.begin());
    if (!states.empty() && std::ranges::equal(states.back().sums, sums)) return;
    if (states.size() == kMost) states.erase(states.begin() + 1);
    states.push_back({to.messages, {sums.begin(), sums.end()}});
  }
  // That worker has read as many messages, and computes with nothing older any more.
  void hears(std::uint32_t worker, std::uint64_t heard) { heard_[worker] = std::max(heard_[worker], heard); }
  // As they were in the first `heard` messages to that reader; empty: the row was in none of them.
  std::span<const T> at(net::Rank reader, std::uint32_t number, std::uint64_t heard) const {
    const auto row = readers_[reader].rows.find(number);
    if (row == readers_[reader].rows.end()) return {};
    const auto later = std::ranges::upper_bound(row->second, heard, {}, &State::message);
    return later == row->second.begin() ? std::span<const T>{} : std::span<const T>(std::prev(later)->sums);
  }
  void leaves(net::Rank reader) { readers_[reader].rows.clear(); }
  void clear() {
    for (Reader& reader : readers_) reader.rows.clear();
  }

 private:
  struct State {
    std::uint64_t message;             // the first that it was in
    std::vector<T> sums;
  };
  using States = std::vector<State>;   // of one row, the newest last
  struct Reader {
    std::uint64_t messages = 0;
    std::unordered_map<std::uint32_t, States> rows;  // by number
  };
  std::uint64_t least_heard(net::Rank reader) const {
    const std::uint32_t first = workers_.first_of(reader);
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    const std::uint32_t end = first + workers_.count_of(reader);
    for (std::uint32_t worker = first; worker < end; ++worker) least = std::min(least, heard_[worker]);
    return least;
  }

  const Workers workers_;
  std::vector<Reader> readers_;        // by rank
  std::vector<std::uint64_t> heard_;   // by worker
};

}  // namespace shoal::table
