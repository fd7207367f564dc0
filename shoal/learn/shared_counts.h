// Sums over all members of integers that each has, in two rows whatever the number of calls, where SharedSums has a row for each: for millions of
// numbers. What a member adds is the difference to what it added to that row before, so that the row is the sum of what all have now. Rows take turns:
// who adds to one again has been at a barrier since all read it. By all members alike, one call after another; each is a barrier.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shoal/table/tables.h"

namespace shoal::learn {

class SharedCounts {
 public:
  SharedCounts(table::Worker& worker, const std::string& name, std::size_t width)
      : table_(worker.open<std::int64_t>({.name = name, .width = width, .consistency = table::Bsp{}, .initial = {}})) {}

  // own: `width` numbers; sums of all members' take their place.
  void sum(std::vector<std::int64_t>& own) {
    const table::Key key = calls_++ % before_.size();
    std::vector<std::int64_t>& before = before_[key];
    before.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::int64_t now = own[i];
      own[i] -= before[i];
      before[i] = now;
    }
    table_.add({&key, 1}, own);
    table_.barrier();
    table_.read({&key, 1}, own);
  }

 private:
  table::Table<std::int64_t> table_;
  std::array<std::vector<std::int64_t>, 2> before_;
  std::uint64_t calls_ = 0;
};

}  // namespace shoal::learn
