// Memory that is kept for the next one, of the process and of other kinds.
#include "shoal/core/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shoal {
namespace {

constexpr std::size_t kBody = 100'000;

// Counts what it gave, until it has no more.
struct Source {
  BytesPool::Fresh fresh() {
    return [this](std::size_t size) -> std::shared_ptr<std::byte> {
      if (left == 0) return nullptr;
      --left;
      given.push_back(size);
      return {new std::byte[size], std::default_delete<std::byte[]>()};
    };
  }
  int left = 100;
  std::vector<std::size_t> given{};
};

TEST(Bytes, what_was_let_go_is_the_next_one_of_about_its_size) {
  Source source;
  const BytesPool pool(source.fresh());
  Bytes first = pool.take(kBody);
  EXPECT_EQ(first.size(), kBody);
  const std::byte* const at = first.data();
  Bytes second = pool.take(kBody);  // while that is held
  EXPECT_NE(second.data(), at);
  first = {};
  EXPECT_EQ(pool.take(kBody - 100).data(), at);
  EXPECT_EQ(source.given.size(), 2);
}

TEST(Bytes, where_a_kind_has_no_more_they_are_of_the_process) {
  Source source{.left = 1};
  const BytesPool pool(source.fresh());
  const Bytes of_kind = pool.take(kBody), other = pool.take(kBody);
  ASSERT_NE(other.data(), nullptr);
  EXPECT_NE(other.data(), of_kind.data());
  EXPECT_EQ(source.given.size(), 1);
  EXPECT_TRUE(pool.take(0).empty());
  EXPECT_EQ(pool.take(10).size(), 10);  // few are not worth a kind
}

TEST(Bytes, outlive_their_pool) {
  Bytes held;
  {
    Source source;
    held = BytesPool(source.fresh()).take(kBody);
  }
  std::fill(held.begin(), held.end(), std::byte{7});
  EXPECT_EQ(held.data()[kBody - 1], std::byte{7});
}

// Goal: nothing is kept without a bound. Method: far more is let go at once than may be kept.
TEST(Bytes, what_is_kept_is_bounded) {
  constexpr std::size_t kLarge = 8 << 20, kMany = 20;
  Source source;
  const BytesPool pool(source.fresh());
  std::vector<Bytes> all;
  for (std::size_t i = 0; i < kMany; ++i) all.push_back(pool.take(kLarge));
  all.clear();
  for (std::size_t i = 0; i < kMany; ++i) all.push_back(pool.take(kLarge));
  EXPECT_GT(source.given.size(), kMany);
  EXPECT_LT(source.given.size(), 2 * kMany);
}

// Goal: memory copied from the beginning of a page is not 1 to 31 bytes behind that of one, where some processors copy slowly (bytes.cc).
TEST(Bytes, of_the_process_begin_on_lines) {
  for (const std::size_t size : {kBody, std::size_t{1} << 20, std::size_t{9} << 20}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Bytes(size).data()) % 64, 0);
  }
}

}  // namespace
}  // namespace shoal
