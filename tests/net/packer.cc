// Where packing pays, and whose memory a frame leaves from.
#include "shoal/net/packer.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "shoal/core/packed_words.h"

namespace shoal::net {
namespace {

constexpr bool kLink = true, kLoopback = false;

OutFrame frame_of(std::span<const std::byte> payload) {
  OutFrame frame;
  frame.payload = payload;
  return frame;
}

TEST(Packer, pays_on_links_that_are_slower_than_packing_unless_it_is_told_otherwise) {
  const Packer automatic(Packing::automatic), always(Packing::always), never(Packing::never);
  EXPECT_TRUE(automatic.pays(kLink, 0));
  EXPECT_TRUE(automatic.pays(kLink, 1.2e9));   // 10 Gbit/s
  EXPECT_FALSE(automatic.pays(kLink, 3.1e9));  // 25 Gbit/s
  EXPECT_FALSE(automatic.pays(kLoopback, 0));
  EXPECT_TRUE(always.pays(kLoopback, 3.1e9));
  EXPECT_FALSE(never.pays(kLink, 0));
}

TEST(Packer, a_frame_leaves_from_memory_that_an_earlier_one_has_left) {
  Packer packer(Packing::always);
  std::vector<float> gradient(4096);
  std::mt19937 random(1);
  for (float& x : gradient) x = std::normal_distribution<float>()(random);
  const auto bytes = std::as_bytes(std::span(gradient));

  OutFrame first = frame_of(bytes);
  packer.pack(first);
  ASSERT_EQ(first.stream_bytes(), bytes.size());
  ASSERT_LT(first.payload.size(), bytes.size());
  const std::byte* memory = first.payload.data();
  packer.take_back(first);

  OutFrame second = frame_of(bytes), third = frame_of(bytes);
  packer.pack(second);
  packer.pack(third);  // while the second waits
  EXPECT_EQ(second.payload.data(), memory);
  EXPECT_NE(third.payload.data(), memory);
  for (const OutFrame* frame : {&second, &third}) {
    std::vector<float> back(gradient.size());
    ASSERT_TRUE(unpack_words(frame->payload, std::as_writable_bytes(std::span(back))));
    EXPECT_EQ(back, gradient);
  }
}

TEST(Packer, what_would_take_as_many_bytes_leaves_from_where_it_lies) {
  Packer packer(Packing::always);
  std::vector<std::uint32_t> noise(4096);
  std::mt19937 random(1);
  for (std::uint32_t& x : noise) x = random();
  const std::vector<float> few(100);  // zeros
  for (const auto bytes : {std::as_bytes(std::span(noise)), std::as_bytes(std::span(few))}) {
    OutFrame frame = frame_of(bytes);
    packer.pack(frame);
    EXPECT_EQ(frame.payload.data(), bytes.data());
    EXPECT_EQ(frame.unpacked, 0u);
  }
}

}  // namespace
}  // namespace shoal::net
