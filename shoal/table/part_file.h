// A part of a snapshot: what one server owned, as chunks of an image (image.h) one behind the other.
//
//   8 bytes "SHOALTAB"; length of the text; the text: the cut, as in table.json; the part's number;
//   for each chunk its length in bytes and its bytes; 0; the number of rows; a hash (Fnv1a) of all chunks
//
// Numbers are 64 bits in the byte order of x86 and ARM. A file is there whole or not at all, and it is on the disk when it has its name.
// What is read may be anything: cut short, changed, or of another table. Threads: one at a time for each object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "shoal/core/bytes.h"
#include "shoal/core/fnv.h"
#include "shoal/table/snapshot_folder.h"

namespace shoal::table {

// Bytes of one row of a chunk: key, values and the state of the table's rule.
std::size_t chunk_row_bytes(const Spec& spec);

class PartWriter {
 public:
  // All throw Error{io} naming the file. The folder is made if it is missing.
  PartWriter(const std::filesystem::path& folder, const Cut& cut, std::uint32_t part);
  ~PartWriter();                                   // what is not finished leaves nothing
  PartWriter(const PartWriter&) = delete;
  void append(const Bytes& chunk);
  void finish();

 private:
  void write(std::span<const std::byte> bytes);
  void write_number(std::uint64_t number) { write(std::as_bytes(std::span(&number, 1))); }
  [[noreturn]] void refuse(int error) const;

  const std::filesystem::path file_, aside_;
  const std::size_t row_bytes_;
  int descriptor_ = -1;
  std::uint64_t rows_ = 0;
  Fnv1a hash_;
};

class PartReader {
 public:
  // All throw Error{io, invalid_argument} naming the file. cut: of the snapshot to which it must belong.
  PartReader(const std::filesystem::path& folder, const Cut& cut, std::uint32_t part);
  Bytes next();                                    // the chunk that follows; empty: that was the last, and the file is as it was written
 private:
  std::uint64_t number();
  void read(std::span<std::byte> bytes);
  [[noreturn]] void refuse(const std::string& what) const;

  const std::filesystem::path file_;
  const std::size_t row_bytes_;
  std::ifstream in_;
  std::uint64_t size_ = 0, rows_ = 0;
  Fnv1a hash_;
};

}  // namespace shoal::table
