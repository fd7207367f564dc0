// The wire form of a pair. ReLU and dropout leave zeros in a layer's input and in the gradient of its output, in many networks more than half
// of the numbers: a matrix travels as one bit for each number and those numbers that are not zero, wherever that is shorter. Lossless to the
// last bit; a negative zero counts as a number.
//
//   u64 rows, u64 bytes of x, u64 bytes of g, u64 0; x; g; up to whole lines. x and g begin at multiples of 8, at least 8 bytes apart.
//   A matrix of n numbers: the numbers, or ceil(n / 64) words in which bit i says that number i is not zero, and those that are not.
//   Its bytes tell which.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shoal/factor/factor.h"

namespace shoal::factor {

inline constexpr std::uint64_t kLine = 64;  // pairs are whole numbers of these

// filled: the share of the pair's numbers that are not zero; at 1 the most that a pair takes.
std::uint64_t wire_bytes(const Shape& shape, std::uint64_t rows, double filled = 1);

// Returns how many bytes it wrote: at most wire_bytes(shape, pair.rows). pair.rest does not travel with it.
std::uint64_t write(const Pair& pair, const Shape& shape, std::byte* to);

// A pair as it came, of which nothing is unpacked yet.
struct Written {
  std::uint64_t rows = 0;
  std::span<const std::byte> x, g;
};
// Throws Error{mismatch} unless `from`, which is aligned to 8 bytes, is what write() makes of such a layer.
Written read(std::span<const std::byte> from, const Shape& shape);

// A matrix of `count` numbers out of a Written.
void unpack(std::span<const std::byte> matrix, DType type, std::uint64_t count, std::byte* to);

}  // namespace shoal::factor
