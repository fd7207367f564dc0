// LIBSVM's text: a sample a line, "label index:value index:value ...", indices ascending, "#" begins a comment. A label is any number: a class, a
// sign, a target. "qid:" pairs of ranking data are left out and counted.
//
//   auto [samples, read] = read_libsvm({"train.bz2"}, {}, {.share = {rank, ranks}});
//   LibsvmReader reader({"large.zst"}, {.columns = 1 << 20});
//   for (SparseRows batch; reader.next(batch, 1000);) learn(batch);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/data/sparse_rows.h"

namespace shoal::data {

struct LibsvmForm {
  std::uint32_t columns = 0;  // that there are; more are refused. 0: as many as the files have
  bool zero_based = false;    // indices count from 0, not from 1
};

// Appends the sample of a line to `into` and widens it where no width is given. Pure but for that.
Verdict parse_libsvm(std::string_view line, const LibsvmForm& form, SparseRows& into);

class LibsvmReader {
 public:
  LibsvmReader(std::vector<std::filesystem::path> files, LibsvmForm form = {}, const ReadOptions& options = {});

  // Puts this member's next samples into `batch`, at most so many, in place of what it had. False when none is left. Throws Error{invalid_argument}
  // for what Lines refuses, the first fault ("file:line: what (hint)") and files without a single sample. Where no width was given, batch.width
  // grows while reading.
  bool next(SparseRows& batch, std::size_t most);
  const Read& read() const { return intake_.read; }  // so far

 private:
  LibsvmForm form_;
  Intake intake_;
};

std::pair<SparseRows, Read> read_libsvm(std::vector<std::filesystem::path> files, LibsvmForm form = {}, const ReadOptions& options = {});

}  // namespace shoal::data
