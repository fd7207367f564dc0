// What learners over sparse rows do minibatch by minibatch: who has which row of it, and which columns it touches. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/exchange/matrix_way.h"
#include "shoal/learn/labelled_rows.h"
#include "shoal/table/row_map.h"

namespace shoal::learn {

inline std::size_t minibatches(std::size_t rows, std::size_t batch) { return (rows - 1) / batch + 1; }

// This member's rows, as places in rows.own, of each minibatch of `batch` rows of all members. All members put all rows into the same order of this
// epoch, and cut it alike: a minibatch is the same set of rows whatever the number of members. Rows that are on disk are put in order a block at a time, so that what
// follows each other lies near each other.
std::vector<std::vector<std::uint32_t>> deal(const LabelledRows& rows, std::size_t batch, std::uint64_t seed, unsigned epoch);

// What this member does in a clock to a matrix with a row for each column and one for ones, where each of its rows is a factor: means over a few of
// the minibatches that were dealt.
exchange::MatrixLoad load_of(const LabelledRows& rows, const std::vector<std::vector<std::uint32_t>>& dealt);

// The different columns of a few rows as keys of a table, and behind them the key `columns`, which stands for a column of ones.
class TouchedColumns {
 public:
  explicit TouchedColumns(std::uint32_t columns) : columns_(columns), place_(columns) {}
  void collect(const data::SparseSlice& rows, std::span<const std::uint32_t> numbers);

  std::span<const table::Key> keys() const { return keys_; }
  std::size_t place(std::uint32_t column) const { return place_[column]; }  // in keys(), of a column of those rows
  std::size_t ones() const { return keys_.size() - 1; }

 private:
  std::uint32_t columns_;
  std::vector<table::Key> keys_;
  std::vector<std::uint32_t> place_;
};

}  // namespace shoal::learn
