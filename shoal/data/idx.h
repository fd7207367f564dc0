// IDX: the binary format of MNIST and its kin (LeCun): arrays of one type, whose first dimension counts samples; the others become columns. Labels are a file of
// their own, found by its name: beside train-images-idx3-ubyte.gz lies train-labels-idx1-ubyte.gz. Without it all labels are 0.
//
//   IdxReader reader({"train-images-idx3-ubyte.gz"});
//   for (SparseRows batch; reader.next(batch, 1000);) learn(batch);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "shoal/data/read.h"
#include "shoal/data/sparse_rows.h"
#include "shoal/data/unpacked_file.h"

namespace shoal::data {

// Whether a file that begins so is one of these.
bool is_idx(std::string_view begin);

class IdxReader {
 public:
  // Several files are read as one. Throws Error{invalid_argument} for what is no such file, and for labels that are not as many as samples.
  explicit IdxReader(std::vector<std::filesystem::path> files);

  // As LibsvmReader::next, for one member. Throws Error{invalid_argument} where a file is cut short, or has another size of samples than the first.
  bool next(SparseRows& batch, std::size_t most);
  const Read& read() const { return read_; }  // so far

 private:
  struct Array {  // a file that is being read
    explicit Array(const std::filesystem::path& path);
    double number(const char* at) const;
    std::filesystem::path path;
    UnpackedFile file;
    std::uint8_t type = 0;
    std::size_t bytes = 0;                  // of a number
    std::vector<std::uint64_t> dimensions;
    std::uint64_t numbers = 1;              // of a sample
  };
  bool open_next();
  std::string_view take(Array& array);  // the bytes of its next sample

  Read read_;
  std::size_t opened_ = 0;  // files
  std::unique_ptr<Array> samples_, labels_;
  std::uint64_t left_ = 0;  // samples of the open file
  std::vector<char> buffer_;
};

}  // namespace shoal::data
