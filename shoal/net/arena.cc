#include "shoal/net/arena.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace shoal::net {
namespace {

std::size_t in_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

ArenaView::ArenaView(int memory) : all_(memory, kArenaBytes, SealedMapping::Access::read) {
  all_.keep_from_core_files();
  all_.keep_from_children();
}

Arena::Arena() : memory_(sealed_file("shoal arena", kArenaBytes)), all_(memory_.get(), kArenaBytes, SealedMapping::Access::write), maker_(getpid()) {
  all_.keep_from_core_files();
  if (!all_) memory_.reset();
}

std::byte* Arena::allocate(std::size_t bytes) {
  if (!all_ || bytes > kArenaBytes) return nullptr;
  if (getpid() != maker_) return nullptr;
  const std::size_t wanted = in_pages(std::max<std::size_t>(bytes, 1));
  const std::lock_guard lock(mutex_);
  std::uint64_t begin = 0;  // of the first gap that is large enough
  for (const auto& [offset, size] : used_) {
    if (offset - begin >= wanted) break;
    begin = offset + size;
  }
  if (kArenaBytes - begin < wanted) return nullptr;
  used_[begin] = wanted;
  return all_.at() + begin;
}

void Arena::free(std::byte* memory) {
  if (getpid() != maker_) return;  // whose it still is
  const auto offset = static_cast<std::uint64_t>(memory - all_.at());
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(offset);
  fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(found->second));
  used_.erase(found);
}

std::optional<std::uint64_t> Arena::offset_of(std::span<const std::byte> bytes) const {
  if (!all_ || bytes.data() < all_.at() || bytes.data() >= all_.at() + kArenaBytes) return {};
  return static_cast<std::uint64_t>(bytes.data() - all_.at());
}

}  // namespace shoal::net
