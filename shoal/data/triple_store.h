// Triples in memory, or in files: then the kernel keeps of them what it has room for. The files have no name; they go with the last copy of the store, however
// the process ends. Copies share them.
// Threads: share while nobody appends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "shoal/data/triples.h"

namespace shoal::data {

class SpilledNumbers;  // spilled_numbers.h

class TripleStore {
 public:
  TripleStore() = default;  // in memory
  // In files in this folder. Throws Error{io} where they cannot be made, here and when the disk is full.
  static TripleStore in(const std::filesystem::path& folder);

  void append(std::uint32_t row, std::uint32_t column, float value);
  void finish();  // before they are read, after the last append
  std::size_t size() const { return size_; }
  bool on_disk() const { return rows_ != nullptr; }
  TripleSlice all() const;

 private:
  std::size_t size_ = 0;
  Triples kept_;  // unless they are in files
  std::shared_ptr<SpilledNumbers> rows_, columns_, values_;
};

}  // namespace shoal::data
