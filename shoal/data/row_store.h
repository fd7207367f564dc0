// Rows in memory, or with their columns and values in files: then of each row 16 bytes are in memory, and the kernel keeps of the rest what it has room for. The files
// have no name; they go with the last copy of the store, however the process ends. Copies share them.
// Threads: share while nobody appends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "shoal/data/number_store.h"
#include "shoal/data/sparse_rows.h"

namespace shoal::data {

class RowStore {
 public:
  RowStore() = default;  // in memory
  // In files in this folder. Throws Error{io} where they cannot be made, here and when the disk is full.
  static RowStore in(const std::filesystem::path& folder);

  void append(const SparseRow& row);
  void finish();  // before the rows are read, after the last append
  std::size_t size() const { return labels.size(); }
  bool on_disk() const { return columns_.on_disk(); }
  SparseSlice all() const { return {offsets_, columns_.all(), values_.all(), labels}; }
  operator SparseSlice() const { return all(); }
  SparseRow operator[](std::size_t i) const { return all()[i]; }

  std::vector<double> labels;
  std::uint32_t width = 0;

 private:
  std::vector<std::uint64_t> offsets_ = {0};
  NumberStore<std::uint32_t> columns_;
  NumberStore<float> values_;
};

}  // namespace shoal::data
