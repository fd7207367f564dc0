// What is packed comes back bit by bit, whatever it is; every target of this CPU gives the same bytes; gradients take as little as is said, and what
// pack_words() did not make is refused.
#include "shoal/core/packed_words.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "tests/core/every_target.h"
#include "tests/core/like_gradients.h"

namespace shoal {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

std::optional<std::vector<std::byte>> packed(std::span<const std::byte> bytes) {
  std::vector<std::byte> into(room_to_pack(bytes.size()));
  into.resize(pack_words(bytes, into.data()));
  if (into.empty()) return {};
  return into;
}

void expect_back(std::span<const std::byte> bytes) {
  const auto once = packed(bytes);
  if (!once) return;
  EXPECT_LE(once->size(), bytes.size() - bytes.size() / 16);
  for (const std::size_t astray : {0U, 1U}) {  // memory without alignment
    std::vector<std::byte> back(bytes.size() + 2, std::byte{7});
    ASSERT_TRUE(unpack_words(*once, std::span(back).subspan(astray, bytes.size())));
    EXPECT_EQ(std::memcmp(back.data() + astray, bytes.data(), bytes.size()), 0);
    EXPECT_EQ(back.back(), std::byte{7});
  }
}

class PackedWords : public EveryTarget {};

TEST_P(PackedWords, come_back_bit_by_bit_in_every_length) {
  const auto values = like_gradients(300);
  for (std::size_t size = 0; size <= values.size() * 4; ++size) expect_back(bytes_of(values).first(size));
  for (const double zeros : {0.01, 0.5, 0.9, 0.999, 1.0}) expect_back(bytes_of(like_gradients(16'384 + 5, zeros)));
}

TEST_P(PackedWords, keep_what_is_no_usual_number) {
  auto values = like_gradients(20'000);
  using Limits = std::numeric_limits<float>;
  std::size_t at = 0;
  for (const float odd : {0.0F, -0.0F, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::signaling_NaN(), Limits::denorm_min(), -Limits::min(), Limits::max()}) {
    values[at += 2003] = odd;
    ASSERT_TRUE(packed(bytes_of(values)));
    expect_back(bytes_of(values));
  }
  for (unsigned count = 0; count <= 64; ++count) {  // of words that are there, whichever
    std::vector<float> block(64);
    for (unsigned i = 0; i < count; ++i) block[(i * 37) % 64] = std::ldexp(1.5F, -static_cast<int>(i));
    expect_back(bytes_of(block));
  }
}

TEST_P(PackedWords, take_what_gradients_should) {
  const auto share = [](const std::vector<float>& values) { return static_cast<double>(packed(bytes_of(values)).value().size()) / static_cast<double>(4 * values.size()); };
  EXPECT_LT(share(like_gradients(1 << 16)), 0.862);
  EXPECT_LT(share(like_gradients(1 << 16, 0.5)), 0.51);
  EXPECT_LT(share(like_gradients(1 << 16, 0.99)), 0.08);
  EXPECT_LT(share(std::vector<float>(1 << 16)), 0.01);
  EXPECT_NEAR(packed_share(bytes_of(like_gradients(1 << 20, 0.5))), share(like_gradients(1 << 20, 0.5)), 0.01);
  EXPECT_EQ(packed_share({}), 1);
  auto uneven = like_gradients(1 << 16);  // saves a tenth: still worth it, and from the start on
  for (std::size_t i = 0; i < uneven.size(); i += 6) uneven[i] *= 1e-4F;
  EXPECT_NEAR(share(uneven), 0.89, 0.02);
}

TEST_P(PackedWords, are_left_alone_where_that_saves_nothing) {
  std::mt19937 random(1);
  std::vector<std::uint32_t> noise(1 << 14);
  for (auto& word : noise) word = random();
  EXPECT_FALSE(packed(std::as_bytes(std::span(noise))));
  EXPECT_EQ(packed_share(std::as_bytes(std::span(noise))), 1);
  for (std::size_t i = 0; i < 2000; ++i) noise[i] = 0x3f800000;  // begins well
  EXPECT_FALSE(packed(std::as_bytes(std::span(noise))));
}

TEST_P(PackedWords, give_the_same_bytes_on_every_target) {
  for (const double zeros : {0.0, 0.3, 0.97}) {
    const auto values = like_gradients(5000, zeros);
    const auto here = packed(bytes_of(values));
    choose_target(0);
    EXPECT_EQ(here, packed(bytes_of(values)));
    choose_target(GetParam());
  }
}

TEST_P(PackedWords, that_are_not_are_refused_or_are_some) {
  const auto values = like_gradients(700, 0.2);
  const auto once = packed(bytes_of(values)).value();
  std::vector<std::byte> back(values.size() * 4);
  for (std::size_t size = 0; size < once.size(); ++size) EXPECT_FALSE(unpack_words(std::span(once).first(size), back));
  auto longer = once;
  longer.push_back({});
  EXPECT_FALSE(unpack_words(longer, back));
  auto wrong = once;
  wrong[1] = std::byte{3};
  EXPECT_FALSE(unpack_words(wrong, back));
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {  // whatever comes of it, it stays within its memory
    wrong = once;
    wrong[random() % wrong.size()] = static_cast<std::byte>(random());
    unpack_words(wrong, back);
  }
}

INSTANTIATE_TEST_SUITE_P(targets, PackedWords, testing::ValuesIn(targets_here()), target_name);

}  // namespace
}  // namespace shoal
