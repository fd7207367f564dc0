// Sums over all members of a few numbers that each has, such as losses and counts: exact as doubles add in the order of ranks, the same on all.
// By all members alike, one after another; each call is a barrier.
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
    const table::Key key = calls_++;  // a row a call: nobody can mix two of them up
    table_.add({&key, 1}, own);
    table_.barrier();
    std::vector<double> all(own.size());
    table_.read({&key, 1}, all);
    return all;
  }

 private:
  table::Table<double> table_;
  table::Key calls_ = 0;
};

}  // namespace shoal::learn
