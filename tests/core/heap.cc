// Oracle: the kernel's count of pages that this process was given.
#include "shoal/core/heap.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/sanitizer.h"

namespace shoal {
namespace {

#ifdef __GLIBC__
constexpr bool kGlibcs = !kAddressSanitizer && !kThreadSanitizer;
#else
constexpr bool kGlibcs = false;
#endif

long faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Pages that a step takes which allocates 128 MB in blocks, writes them and frees them.
long of_a_step() {
  constexpr std::size_t kBlock = 4 << 20, kPage = 4096;
  const long before = faults();
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 32; ++i) {
    blocks.emplace_back(new char[kBlock]);
    for (std::size_t at = 0; at < kBlock; at += kPage) const_cast<volatile char&>(blocks.back()[at]) = 1;
  }
  blocks.clear();
  return faults() - before;
}

TEST(Heap, keeps_what_a_step_has_freed_for_the_next_one) {
  ::setenv("MALLOC_TRIM_THRESHOLD_", "100000", 1);
  EXPECT_FALSE(keep_freed_memory());
  ::unsetenv("MALLOC_TRIM_THRESHOLD_");
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=100000", 1);
  EXPECT_FALSE(keep_freed_memory());
  ::unsetenv("GLIBC_TUNABLES");
  if (!kGlibcs) GTEST_SKIP() << "another allocator";
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);  // huge pages are few
  of_a_step();
  EXPECT_GT(of_a_step(), 10'000);  // glibc by itself: there is something to gain
  ASSERT_TRUE(keep_freed_memory());
  of_a_step();
  EXPECT_LT(of_a_step(), 1'000);
}

}  // namespace
}  // namespace shoal
