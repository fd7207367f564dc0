// Large memory that is read here and there, on huge pages where the kernel has them: addresses are found in fewer steps. Threads: any.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace shoal {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Whole huge pages, `bytes` at least, with anything in them; for std::free(). Throws std::bad_alloc, also for more than there are addresses.
inline void* allocate_huge(std::size_t bytes) {
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory = whole < bytes ? nullptr : std::aligned_alloc(kHugePage, whole);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}

}  // namespace shoal
