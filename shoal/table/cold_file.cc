#include "shoal/table/cold_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "shoal/core/unnamed_file.h"

namespace shoal::table {

std::shared_ptr<ColdFile> ColdFile::in(const std::filesystem::path& folder) { return std::shared_ptr<ColdFile>(new ColdFile(folder)); }

ColdFile::ColdFile(const std::filesystem::path& folder) : folder_(folder) {
  descriptor_ = open_unnamed(folder, "rows");
  if (descriptor_ < 0) refuse(Code::invalid_argument, errno);
}

ColdFile::~ColdFile() {
  for (const std::span<std::byte> extent : extents_) ::munmap(extent.data(), extent.size());
  ::close(descriptor_);
}

Bytes ColdFile::take(std::size_t size) {
  constexpr std::size_t alignment = 64;
  if (extents_.empty() || used_ + size > extents_.back().size()) extend(size);
  std::byte* const memory = extents_.back().data() + used_;
  used_ += (size + alignment - 1) / alignment * alignment;
  return {std::shared_ptr<std::byte[]>(shared_from_this(), memory), size};
}

// Extents grow with the file: few are mapped, and little lies idle.
void ColdFile::extend(std::size_t size) {
  constexpr std::size_t least = std::size_t{1} << 20, most = std::size_t{256} << 20, page = 4096;
  const std::size_t extent = (std::max(size, std::clamp(length_, least, most)) + page - 1) / page * page;
  if (const int error = ::posix_fallocate(descriptor_, static_cast<off_t>(length_), static_cast<off_t>(extent)); error != 0) refuse(Code::io, error);
  void* const mapped = ::mmap(nullptr, extent, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(length_));
  if (mapped == MAP_FAILED) refuse(Code::io, errno);
  extents_.push_back({static_cast<std::byte*>(mapped), extent});
  length_ += extent;
  used_ = 0;
}

void ColdFile::refuse(Code code, int error) const {
  throw Error(code, "no room for rows: " + std::generic_category().message(error), folder_.string(), "name another folder for cold rows");
}

}  // namespace shoal::table
