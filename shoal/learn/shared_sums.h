// Sums over all members of numbers that each has, such as losses and counts: exact as doubles add in the order of ranks, the same on all.
// By all members alike, one after another; each call is a barrier.
//
// Rows take turns, so that two calls cannot be mixed up and nothing grows: a row is read behind the barrier of its call n, is zero again before that
// of call n + 2, and is added to after it.
#pragma once

#include <string>
#include <vector>

#include "shoal/table/tables.h"

namespace shoal::learn {

class SharedSums {
 public:
  SharedSums(table::Worker& worker, const std::string& name, std::size_t width)
      : table_(worker.open<double>({.name = name, .width = width, .consistency = table::Bsp{}, .initial = {}})) {}

  // own: `width` numbers.
  std::vector<double> sum(const std::vector<double>& own) {
    const table::Key key = calls_ % kRows, before = (calls_ + kRows - 1) % kRows;
    table_.add({&key, 1}, own);
    table_.barrier();
    std::vector<double> all(own.size());
    if (calls_++ > 0) table_.assign({&before, 1}, all);
    table_.read({&key, 1}, all);
    return all;
  }

 private:
  static constexpr table::Key kRows = 3;
  table::Table<double> table_;
  table::Key calls_ = 0;
};

}  // namespace shoal::learn
