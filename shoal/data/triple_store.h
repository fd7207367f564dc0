// Triples in memory, or in files: then the kernel keeps of them what it has room for. The files have no name; they go with the last copy of the store, however
// the process ends. Copies share them.
// Threads: share while nobody appends.
#pragma once

#include <cstdint>
#include <filesystem>

#include "shoal/data/number_store.h"
#include "shoal/data/triples.h"

namespace shoal::data {

class TripleStore {
 public:
  TripleStore() = default;  // in memory
  // In files in this folder. Throws Error{io} where they cannot be made, here and when the disk is full.
  static TripleStore in(const std::filesystem::path& folder);

  void append(std::uint32_t row, std::uint32_t column, float value);
  void finish();  // before they are read, after the last append; in memory it may be left out
  std::size_t size() const { return values_.all().size(); }
  bool on_disk() const { return values_.on_disk(); }
  TripleSlice all() const { return {rows_.all(), columns_.all(), values_.all()}; }

 private:
  NumberStore<std::uint32_t> rows_, columns_;
  NumberStore<float> values_;
};

}  // namespace shoal::data
