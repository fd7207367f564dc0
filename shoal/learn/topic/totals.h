// Tokens of each topic (C_k) as one worker has them: what all others had done up to a clock that is `staleness` clocks ago, and everything that it
// did itself. Not more either, however quick the others were: the same run gives the same bits.
//
// A shared table never shows less than its clock promises, but it may show more. So changes of clock t go to row t mod (2 staleness + 3), and are
// read once, when nobody can add to them any more; nobody is so far ahead that it writes to that row again. The difference of a row to what it was
// when it was read before is what came in its clock.
//
// Threads: one, the worker's. Lifetime: the Tables outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "shoal/learn/topic/model.h"
#include "shoal/table/tables.h"

namespace shoal::learn::topic {

class Totals {
 public:
  // By all workers. own: tokens of each topic among this worker's.
  Totals(table::Worker worker, std::span<const std::int64_t> own, unsigned staleness);

  std::span<const std::int64_t> counts() const { return counts_; }
  // Own changes, seen at once.
  void move(Topic from, Topic to) {
    --counts_[from];
    ++counts_[to];
  }
  void add(Topic to) { ++counts_[to]; }  // a token that had none
  std::uint64_t ticks() const { return ticks_; }  // after each, counts are others'
  void tick();  // this worker's clock; waits only for who is more than the staleness behind
  // By all workers, at the same clock: from here on everybody has everything.
  void settle();
  double take_waited() { return std::exchange(waited_, 0); }  // seconds since it was taken
  std::size_t memory() const { return memory(counts_.size(), staleness_); }
  static std::size_t memory(std::size_t topics, unsigned staleness);  // bytes of one
  // Of a member beside those of its workers: rows of the table that it serves and reads, and what is under way.
  static std::size_t table_memory(std::size_t topics, unsigned staleness, std::uint32_t members, std::uint32_t workers);

 private:
  static constexpr std::size_t kWidth = 1024;  // topics of a row, at most
  struct Read {                                // of the rows of one clock
    std::vector<std::int64_t> rows;            // as they were
    std::vector<std::int32_t> own;             // changes of this worker that the next read will have
  };
  std::size_t rows() const { return (counts_.size() + table_.width() - 1) / table_.width(); }
  std::size_t padded() const { return rows() * table_.width(); }
  static std::size_t slots(unsigned staleness) { return 2 * std::size_t{staleness} + 3; }
  std::size_t slots() const { return slots(staleness_); }
  std::span<const table::Key> keys_of(std::size_t slot);
  std::size_t slot_of(table::Clock clock) const { return static_cast<std::size_t>(clock) % slots(); }
  void take_in(std::size_t slot);

  const unsigned staleness_;
  table::Table<std::int64_t> table_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> before_;      // the clock that is not complete: what counts_ have beyond is this worker's own in it
  std::vector<Read> reads_;               // by clock mod slots()
  std::vector<table::Key> keys_;
  std::vector<std::int64_t> values_;
  double waited_ = 0;
  std::uint64_t ticks_ = 0;
};

}  // namespace shoal::learn::topic
