// Memory of rows that lies in a file: a server may own more rows than its machine has memory. The kernel keeps in memory what was used lately, and
// reads the rest again when it is looked at, page by page (who goes through it says so ahead). The file has no name, and goes with the last who uses it. Room on the disk is
// taken before it is used, so that a full disk is an error where rows are added. Threads: one at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/core/error.h"

namespace shoal::table {

class ColdFile : public std::enable_shared_from_this<ColdFile> {
 public:
  // In that folder. Throws Error{invalid_argument} naming it.
  static std::shared_ptr<ColdFile> in(const std::filesystem::path& folder);
  ~ColdFile();
  ColdFile(const ColdFile&) = delete;
  Bytes take(std::size_t size);       // that holds anything. Throws Error{io}
  static void read_ahead(std::span<const std::byte> memory);  // of a file's: who goes through all of it will soon be there

 private:
  explicit ColdFile(const std::filesystem::path& folder);
  void extend(std::size_t size);
  [[noreturn]] void refuse(Code code, int error) const;

  const std::filesystem::path folder_;
  int descriptor_ = -1;
  std::size_t length_ = 0;                         // of the file
  std::vector<std::span<std::byte>> extents_;      // mapped
  std::size_t used_ = 0;                           // of the last extent
};

}  // namespace shoal::table
