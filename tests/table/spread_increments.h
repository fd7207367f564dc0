// Increments of workers in several columns of a row, so that a row that is read shows whether it has all of each or nothing of it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace shoal::table {

enum class Spread : std::uint8_t {
  own,   // worker w's in column w
  some,  // and in another one of its own, far away, its twin, and in one that is everybody's: rows have more than two columns a worker
  all,   // or in all that are no worker's own
};

template <class T>
class SpreadIncrements {
 public:
  SpreadIncrements(std::size_t width, std::uint32_t workers, Spread spread)
      : width_(width), workers_(workers), everybodys_(spread == Spread::own ? 0 : spread == Spread::some ? 1 : width - workers),
        has_twins_(spread == Spread::some) {}

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
