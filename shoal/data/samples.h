// Samples as rows, whatever their format: the first bytes of the first file say whether it is IDX, MatrixMarket (a sample a row, all labels 0) or, else, LIBSVM's
// text; packed or not. Threads: one at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/data/sparse_rows.h"
#include "shoal/data/triples.h"

namespace shoal::data {

class SampleReader {
 public:
  // Throws Error{invalid_argument} as the readers of the formats do. What comes through a pipe is taken for LIBSVM's text.
  explicit SampleReader(std::vector<std::filesystem::path> files, bool skip_faulty = false);
  // As LibsvmReader::next, for one member.
  bool next(SparseRows& batch, std::size_t most) { return next_(batch, most); }
  const Read& read() const { return read_(); }  // so far

 private:
  std::function<bool(SparseRows&, std::size_t)> next_;  // of the format's reader
  std::function<const Read&()> read_;
};

std::pair<SparseRows, Read> read_samples(std::vector<std::filesystem::path> files, bool skip_faulty = false);

// The rows of a matrix: triples in any order, numbers in the same place added up.
SparseRows rows_of(const Triples& triples);

}  // namespace shoal::data
