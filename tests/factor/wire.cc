// Goal: a pair comes out of its wire form with the bits with which it went in, in as few bytes as promised; and bytes that nobody wrote are refused.
#include "shoal/factor/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::factor {
namespace {

// Numbers of any bits, a share of them zero.
std::vector<std::byte> numbers(std::mt19937_64& random, DType type, std::uint64_t count, double filled) {
  std::vector<std::byte> bytes(count * size_of(type) + 1);
  std::bernoulli_distribution is_filled(filled);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!is_filled(random)) continue;
    const auto bits = random() | 1;
    std::memcpy(&bytes[i * size_of(type)], &bits, size_of(type));
  }
  bytes.pop_back();
  return bytes;
}

struct Own {
  std::uint64_t rows;
  std::vector<std::byte> x, g;
  Pair pair() const { return {rows, x.data(), g.data(), nullptr}; }
};

std::vector<std::uint64_t> written(const Own& own, const Shape& shape) {  // in words: aligned
  std::vector<std::uint64_t> wire(wire_bytes(shape, own.rows) / 8);
  const auto bytes = write(own.pair(), shape, reinterpret_cast<std::byte*>(wire.data()));
  EXPECT_LE(bytes, wire.size() * 8);
  EXPECT_EQ(bytes % kLine, 0u);
  wire.resize(bytes / 8);
  return wire;
}

std::vector<std::byte> unpacked(std::span<const std::byte> matrix, DType type, std::uint64_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  unpack(matrix, type, count, bytes.data());
  return bytes;
}

TEST(Wire, a_pair_comes_out_as_it_went_in_and_takes_what_is_promised) {
  std::mt19937_64 random(1);
  for (const auto type : {DType::f32, DType::bf16, DType::f64}) {
    for (const double filled : {0.0, 0.1, 0.5, 0.97, 1.0}) {
      for (const auto& [rows, inputs, outputs] : {std::array<std::uint64_t, 3>{1, 1, 1}, {3, 7, 64}, {32, 100, 300}, {5, 64, 1}}) {
        const Shape shape{inputs, outputs, type};
        const Own own{rows, numbers(random, type, rows * inputs, filled), numbers(random, type, rows * outputs, filled)};
        const auto wire = written(own, shape);
        const auto pair = read(std::as_bytes(std::span(wire)), shape);
        EXPECT_EQ(pair.rows, rows);
        EXPECT_EQ(unpacked(pair.x, type, rows * inputs), own.x);
        EXPECT_EQ(unpacked(pair.g, type, rows * outputs), own.g);
        if (filled == 0 || filled == 1) {
          EXPECT_EQ(wire.size() * 8, wire_bytes(shape, rows, filled));
        }
      }
    }
  }
}

TEST(Wire, half_of_the_numbers_zero_is_half_of_the_bytes_and_a_bit_for_each) {
  std::mt19937_64 random(2);
  const Shape shape{2048, 2048};
  const Own own{32, numbers(random, DType::f32, 32 * 2048, 0.5), numbers(random, DType::f32, 32 * 2048, 0.5)};
  const auto bytes = static_cast<double>(written(own, shape).size() * 8);
  EXPECT_NEAR(bytes / static_cast<double>(32 * shape.row_bytes()), 0.5 + 1.0 / 32, 0.01);
  EXPECT_NEAR(bytes / static_cast<double>(wire_bytes(shape, 32, 0.5)), 1, 0.01);
}

TEST(Wire, a_negative_zero_is_a_number) {
  const float negative = -0.0f, zero = 0;
  const Own own{1, std::vector<std::byte>(400 * sizeof(float)), std::vector<std::byte>(sizeof(float))};
  Own with = own;
  std::memcpy(&with.x[40], &negative, sizeof negative);
  const Shape shape{400, 1};
  const auto wire = written(with, shape);
  const auto x = unpacked(read(std::as_bytes(std::span(wire)), shape).x, DType::f32, 400);
  EXPECT_EQ(x, with.x);
  EXPECT_EQ(std::memcmp(x.data(), &zero, sizeof zero), 0);
}

// Whatever is changed in it: it is refused, or it is a pair whose numbers have their places.
TEST(Wire, bytes_that_nobody_wrote_are_refused) {
  std::mt19937_64 random(3);
  const Shape shape{33, 70};
  const Own own{4, numbers(random, DType::f32, 4 * 33, 0.3), numbers(random, DType::f32, 4 * 70, 0.6)};
  const auto wire = written(own, shape);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    auto broken = wire;
    if (round % 2 == 0) broken.resize(random() % broken.size());
    for (int changes = 0; changes < 2 && !broken.empty(); ++changes) broken[random() % std::min<std::size_t>(broken.size(), 8)] ^= random() >> (random() % 64);
    try {
      const auto pair = read(std::as_bytes(std::span(broken)), shape);
      ASSERT_LE(pair.rows, 1u << 16);
      unpacked(pair.x, DType::f32, pair.rows * shape.inputs);
      unpacked(pair.g, DType::f32, pair.rows * shape.outputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      ++refused;
    }
  }
  EXPECT_GT(refused, 4000);
}

}  // namespace
}  // namespace shoal::factor
