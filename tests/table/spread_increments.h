// Increments in several columns of a row, so that a row that is read shows whether it has all of each or nothing of it. Worker w's is in column w; where
// rows are wide also in a second one of its own, its twin, far from it, and in one that is everybody's. If dense, all columns behind the workers' are everybody's.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace shoal::table {

template <class T>
class SpreadIncrements {
 public:
  SpreadIncrements(std::size_t width, std::uint32_t workers, bool dense)
      : width_(width), workers_(workers), everybodys_(dense ? width - workers : width > 2 * workers), has_twins_(!dense && everybodys_ > 0) {}

  std::vector<T> of(std::uint32_t worker, T amount) const {
    std::vector<T> row(width_);
    row[worker] = amount;
    if (has_twins_) row[twin(worker)] = amount;
    for (std::size_t i = 0; i < everybodys_; ++i) row[workers_ + i] = amount;
    return row;
  }
  // sums: whether everybody's is the sum of what each has added, as of whole numbers.
  void expect_whole(std::span<const T> row, bool sums) const {
    for (std::uint32_t worker = 0; has_twins_ && worker < workers_; ++worker) EXPECT_EQ(row[worker], row[twin(worker)]) << "half an increment of worker " << worker;
    const T all = std::accumulate(row.begin(), row.begin() + workers_, T{});
    for (std::size_t i = 0; sums && i < everybodys_; ++i) EXPECT_EQ(row[workers_ + i], all) << "in column " << workers_ + i;
  }

 private:
  std::size_t twin(std::uint32_t worker) const { return width_ - 1 - worker * ((width_ - workers_ - 1) / workers_); }

  std::size_t width_;
  std::uint32_t workers_;
  std::size_t everybodys_;  // columns
  bool has_twins_;
};

}  // namespace shoal::table
