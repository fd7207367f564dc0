#include "shoal/table/cold_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "shoal/core/unnamed_file.h"

namespace shoal::table {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

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

void ColdFile::read_ahead(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()), page = begin / kPage * kPage;
  ::madvise(reinterpret_cast<void*>(page), begin + memory.size() - page, MADV_WILLNEED);
}

// Extents grow with the file: few are mapped, and little lies idle.
void ColdFile::extend(std::size_t size) {
  constexpr std::size_t least = std::size_t{1} << 20, most = std::size_t{256} << 20;
  const std::size_t extent = (std::max(size, std::clamp(length_, least, most)) + kPage - 1) / kPage * kPage;
  if (const int error = ::posix_fallocate(descriptor_, static_cast<off_t>(length_), static_cast<off_t>(extent)); error != 0) refuse(Code::io, error);
  void* const mapped = ::mmap(nullptr, extent, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(length_));
  if (mapped == MAP_FAILED) refuse(Code::io, errno);
  ::madvise(mapped, extent, MADV_RANDOM);  // a row is looked up, and others around it are not
  extents_.push_back({static_cast<std::byte*>(mapped), extent});
  length_ += extent;
  used_ = 0;
}

void ColdFile::refuse(Code code, int error) const {
  throw Error(code, "no room for rows: " + std::generic_category().message(error), folder_.string(), "name another folder for cold rows");
}

}  // namespace shoal::table
