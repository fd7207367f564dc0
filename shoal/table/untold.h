// Which rows one reader is to be told of, and which of them first: budgeted eager push.
//
// A round may be shorter than all that changed. It has first what the reader is about to need, then what has changed most in relation to its
// size: importance is the sum of max norm / root mean square of the row over the changes since the reader was told. What is left waits for
// the next round, and meanwhile no clock is promised above the first that it lacks. Threads: the transport's loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shoal/table/consistency.h"

namespace shoal::table {

class Untold {
 public:
  struct Row {
    std::uint32_t number;
    Clock lacks;       // the reader has all of the clocks below; kNever: it is to be told at once
    double moved;      // the row's sum of changes when the reader was told last
  };
  void add(const Row& row) { rows_.push_back(row); }
  void clear() { rows_.clear(); }
  template <class Is>
  void drop(const Is& is) {  // those whose number is such
    std::erase_if(rows_, [&](const Row& row) { return is(row.number); });
  }
  // The clock that the reader may be promised, as far as it depends on what is left here.
  Clock complete() const {
    Clock least = kLastClock;
    for (const Row& row : rows_) least = std::min(least, row.lacks);
    return least;
  }
  // Up to `most` rows, and all that lack clocks below `due`; moved(number): the row's sum of changes now.
  template <class Moved>
  std::vector<std::uint32_t> take(std::size_t most, Clock due, const Moved& moved);

 private:
  std::vector<Row> rows_;  // as they changed
};

template <class Moved>
std::vector<std::uint32_t> Untold::take(std::size_t most, Clock due, const Moved& moved) {
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
  std::vector<std::uint32_t> numbers;
  for (auto row = rows_.begin(); row != end; ++row) numbers.push_back(row->number);
  rows_.erase(rows_.begin(), end);
  return numbers;
}

}  // namespace shoal::table
