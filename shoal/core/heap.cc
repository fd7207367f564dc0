#include "shoal/core/heap.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#ifndef __GLIBC__
namespace shoal {

bool keep_freed_memory() { return false; }

}  // namespace shoal
#else
#include <malloc.h>

namespace shoal {
namespace {

bool is_said_by_the_environment() {
  for (const char* name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_"}) {
    if (std::getenv(name)) return true;
  }
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  return tunables && std::strstr(tunables, "glibc.malloc.");
}

}  // namespace

bool keep_freed_memory() {
  // As soon as one of them is set glibc moves none by itself any more: so both, the second to the most that it would come to (mallopt(3)).
  return !is_said_by_the_environment() && mallopt(M_TRIM_THRESHOLD, -1) && mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

}  // namespace shoal
#endif
