// An arena's memory: what is allocated lies apart, others see it where it lies, and what is freed is given back and used again.
#include "shoal/net/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

namespace shoal::net {
namespace {

std::uint64_t kept_bytes(const Arena& arena) {
  struct stat about {};
  EXPECT_EQ(fstat(arena.descriptor(), &about), 0);
  return static_cast<std::uint64_t>(about.st_blocks) * 512;
}

TEST(Arena, others_see_what_lies_in_it) {
  Arena arena;
  const ArenaView view(arena.descriptor());
  ASSERT_TRUE(view);
  std::vector<std::byte*> parts;
  for (int i = 0; i < 10; ++i) {
    parts.push_back(arena.allocate(5000));
    ASSERT_NE(parts.back(), nullptr);
    std::fill_n(parts.back(), 5000, static_cast<std::byte>(i));
  }
  for (int i = 0; i < 10; ++i) {
    const auto offset = arena.offset_of({parts[static_cast<std::size_t>(i)], 5000});
    ASSERT_TRUE(offset);
    const std::byte* const seen = view.find(*offset, 5000);
    ASSERT_NE(seen, nullptr);
    EXPECT_TRUE(std::all_of(seen, seen + 5000, [i](std::byte b) { return b == static_cast<std::byte>(i); }));
  }
  EXPECT_FALSE(arena.offset_of({reinterpret_cast<const std::byte*>(&arena), 8}));
  EXPECT_EQ(view.find(kArenaBytes, 1), nullptr);
  EXPECT_EQ(view.find(1, kArenaBytes), nullptr);
  for (std::byte* part : parts) arena.free(part);
}

TEST(Arena, what_is_freed_is_given_back_and_used_again) {
  Arena arena;
  std::byte* const first = arena.allocate(1 << 20);
  std::byte* const second = arena.allocate(1 << 20);
  std::fill_n(first, 1 << 20, std::byte{1});
  std::fill_n(second, 1 << 20, std::byte{2});
  EXPECT_EQ(kept_bytes(arena), 2u << 20);
  arena.free(first);
  EXPECT_EQ(kept_bytes(arena), 1u << 20);
  EXPECT_EQ(arena.allocate(1000), first);
  EXPECT_EQ(*first, std::byte{0});
  EXPECT_EQ(*second, std::byte{2});
  arena.free(first);
  arena.free(second);
  EXPECT_EQ(kept_bytes(arena), 0u);
}

TEST(Arena, that_is_full_gives_nothing) {
  Arena arena;
  EXPECT_EQ(arena.allocate(kArenaBytes + 1), nullptr);
  std::byte* const all = arena.allocate(kArenaBytes);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(arena.allocate(1), nullptr);
  arena.free(all);
  EXPECT_NE(arena.allocate(1), nullptr);
}

TEST(Arena, nothing_else_is_one) {
  Descriptor other(memfd_create("other", MFD_CLOEXEC));
  EXPECT_FALSE(ArenaView(other.get()));
  EXPECT_FALSE(ArenaView(-1));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(tmpfile(), fclose);  // on a disk, where there are no seals
  ASSERT_EQ(ftruncate(fileno(file.get()), kArenaBytes), 0);
  EXPECT_FALSE(ArenaView(fileno(file.get())));
}

}  // namespace
}  // namespace shoal::net
