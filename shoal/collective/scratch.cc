#include "shoal/collective/scratch.h"

#include <bit>
#include <new>
#include <string>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::collective {

void FreeAligned::operator()(std::byte* bytes) const { ::operator delete(bytes, std::align_val_t{kCacheLine}); }

ScratchBlock ScratchPool::take(std::size_t size) {
  if (size == 0) return {};
  size = std::bit_ceil(size);
  auto& free = free_[static_cast<std::size_t>(std::countr_zero(size))];
  if (!free.empty()) {
    ScratchBlock block = std::move(free.back());
    free.pop_back();
    kept_ -= block.size;
    return block;
  }
  auto* bytes = static_cast<std::byte*>(::operator new(size, std::align_val_t{kCacheLine}, std::nothrow));
  if (!bytes) throw Error(Code::io, "out of memory: " + std::to_string(size) + " bytes for windows and weighted input");
  return {std::unique_ptr<std::byte[], FreeAligned>(bytes), size};
}

void ScratchPool::give(ScratchBlock block) {
  if (block.size == 0 || kept_ + block.size > keep_) return;
  kept_ += block.size;
  free_[static_cast<std::size_t>(std::countr_zero(block.size))].push_back(std::move(block));
}

}  // namespace shoal::collective
