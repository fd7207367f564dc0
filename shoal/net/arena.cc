#include "shoal/net/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace shoal::net {
namespace {

std::byte* map(int memory, int protection) {
  void* const at = mmap(nullptr, kArenaBytes, protection, MAP_SHARED | MAP_NORESERVE, memory, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, kArenaBytes, MADV_DONTDUMP);  // a core file would be as large
  return static_cast<std::byte*>(at);
}

std::size_t in_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

ArenaView::ArenaView(int memory) {
  struct stat about {};
  if (fstat(memory, &about) != 0 || about.st_size != static_cast<off_t>(kArenaBytes)) return;
  // An owner that could cut it short would end this process at its next access.
  if ((fcntl(memory, F_GET_SEALS) & F_SEAL_SHRINK) == 0) return;
  std::byte* const at = map(memory, PROT_READ);
  if (at) madvise(at, kArenaBytes, MADV_DONTFORK);
  at_ = at;
}

ArenaView::~ArenaView() {
  if (at_) munmap(const_cast<std::byte*>(at_), kArenaBytes);
}

Arena::Arena() : memory_(memfd_create("shoal arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (memory_ && ftruncate(memory_.get(), kArenaBytes) == 0 &&
      fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    at_ = map(memory_.get(), PROT_READ | PROT_WRITE);
  }
  if (!at_) memory_.reset();
}

Arena::~Arena() {
  if (at_) munmap(at_, kArenaBytes);
}

std::byte* Arena::allocate(std::size_t bytes) {
  if (!at_ || bytes > kArenaBytes) return nullptr;
  const std::size_t wanted = in_pages(std::max<std::size_t>(bytes, 1));
  const std::lock_guard lock(mutex_);
  std::uint64_t begin = 0;  // of the first gap that is large enough
  for (const auto& [offset, size] : used_) {
    if (offset - begin >= wanted) break;
    begin = offset + size;
  }
  if (kArenaBytes - begin < wanted) return nullptr;
  used_[begin] = wanted;
  return at_ + begin;
}

void Arena::free(std::byte* memory) {
  const auto offset = static_cast<std::uint64_t>(memory - at_);
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(offset);
  fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(found->second));
  used_.erase(found);
}

std::optional<std::uint64_t> Arena::offset_of(std::span<const std::byte> bytes) const {
  if (!at_ || bytes.data() < at_ || bytes.data() >= at_ + kArenaBytes) return {};
  return static_cast<std::uint64_t>(bytes.data() - at_);
}

}  // namespace shoal::net
