// Which rows one reader is to be told of, which of their columns have changed, and which of them first: budgeted eager push.
//
// A round may be shorter than all that changed. It has first what the reader is about to need, then what has changed most in relation to its
// size: importance is the sum of max norm / root mean square of the row over the changes since the reader was told. What is left waits for
// the next round, and meanwhile no clock is promised above the first that it lacks. Threads: the transport's loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shoal/table/changes.h"
#include "shoal/table/consistency.h"

namespace shoal::table {

class Untold {
 public:
  struct Row {
    std::uint32_t number;
    Clock lacks;       // the reader has all of the clocks below; kNever: it is to be told at once
    double moved;      // the row's sum of changes when the reader was told last
  };
  void add(const Row& row, Blocks changed = kWhole) {
    rows_.push_back(row);
    if (changed != kWhole) blocks_[row.number] = changed;
  }
  // More of a row that is here has changed.
  void grow(std::uint32_t number, Blocks changed) {
    const auto known = blocks_.find(number);
    if (known != blocks_.end() && (known->second |= changed) == kWhole) blocks_.erase(known);
  }
  void clear() {
    rows_.clear();
    blocks_.clear();
  }
  template <class Is>
  void drop(const Is& is) {  // those whose number is such
    std::erase_if(rows_, [&](const Row& row) { return is(row.number); });
    std::erase_if(blocks_, [&](const auto& of_row) { return is(of_row.first); });
  }
  // The clock that the reader may be promised, as far as it depends on what is left here.
  Clock complete() const {
    Clock least = kLastClock;
    for (const Row& row : rows_) least = std::min(least, row.lacks);
    return least;
  }
  // How many rows are as much as `room` bytes: one or more. bytes(blocks): of a row of which these have changed.
  template <class Bytes>
  std::size_t fit(std::size_t room, const Bytes& bytes) const;
  // Up to `most` rows, and all that lack clocks below `due`; moved(number): the row's sum of changes now.
  template <class Moved>
  std::vector<Change> take(std::size_t most, Clock due, const Moved& moved);

 private:
  Blocks take_blocks(std::uint32_t number) {
    const auto known = blocks_.find(number);
    if (known == blocks_.end()) return kWhole;
    const Blocks changed = known->second;
    blocks_.erase(known);
    return changed;
  }

  std::vector<Row> rows_;                             // as they changed
  std::unordered_map<std::uint32_t, Blocks> blocks_;   // by number; of those of which not all has changed
};

// By their mean: which of them will go is not known yet.
template <class Bytes>
std::size_t Untold::fit(std::size_t room, const Bytes& bytes) const {
  if (rows_.empty()) return 1;
  std::size_t all = (rows_.size() - blocks_.size()) * bytes(kWhole);
  for (const auto& [number, changed] : blocks_) all += bytes(changed);
  return std::max<std::size_t>(1, room / std::max<std::size_t>(1, all / rows_.size()));
}

template <class Moved>
std::vector<Change> Untold::take(std::size_t most, Clock due, const Moved& moved) {
  auto end = rows_.end();
  if (rows_.size() > most) {
    const auto is_due = [&](const Row& row) { return row.lacks < due || row.lacks == kNever; };
    end = std::stable_partition(rows_.begin(), rows_.end(), is_due);
    if (const auto first = static_cast<std::size_t>(end - rows_.begin()); first < most) {
      const auto cut = rows_.begin() + static_cast<std::ptrdiff_t>(most);
      const auto importance = [&](const Row& row) { return moved(row.number) - row.moved; };
      std::nth_element(end, cut, rows_.end(), [&](const Row& a, const Row& b) { return importance(a) > importance(b); });
      end = cut;
    }
  }
  std::vector<Change> changes;
  for (auto row = rows_.begin(); row != end; ++row) changes.push_back({row->number, take_blocks(row->number)});
  rows_.erase(rows_.begin(), end);
  return changes;
}

}  // namespace shoal::table
