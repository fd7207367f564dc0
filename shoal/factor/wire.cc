#include "shoal/factor/wire.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "shoal/core/error.h"

namespace shoal::factor {
namespace {

using Word = std::uint64_t;
constexpr std::uint64_t kBits = 64;
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 32;

struct PairHead {
  std::uint64_t rows = 0, x_bytes = 0, g_bytes = 0, zero = 0;
};

std::uint64_t words_for(std::uint64_t count) { return (count + kBits - 1) / kBits; }
std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }
// From the beginning of a matrix to that of what follows. unpack() looks at one number more than there are.
std::uint64_t stride(std::uint64_t matrix_bytes) { return rounded_up(matrix_bytes + sizeof(Word), sizeof(Word)); }

// Calls `f` with an unsigned number of the element's size: only whether all bits are zero counts.
template <class F>
auto by_size(DType type, F&& f) {
  switch (size_of(type)) {
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(std::uint8_t{});
  }
}

template <class Bits>
std::uint64_t write_matrix(const std::byte* from, std::uint64_t count, std::byte* to) {
  const auto* numbers = reinterpret_cast<const Bits*>(from);
  const auto filled = count - static_cast<std::uint64_t>(std::count(numbers, numbers + count, Bits{0}));
  const auto packed = words_for(count) * sizeof(Word) + filled * sizeof(Bits), plain = count * sizeof(Bits);
  if (packed >= plain) {
    std::copy_n(from, plain, to);
    return plain;
  }
  auto* word = reinterpret_cast<Word*>(to);
  auto* out = reinterpret_cast<Bits*>(to + words_for(count) * sizeof(Word));
  for (std::uint64_t first = 0; first < count; first += kBits) {
    Word bits = 0;
    const auto end = std::min(kBits, count - first);
    for (std::uint64_t i = 0; i < end; ++i) {  // without a branch: zeros come as they like
      const Bits number = numbers[first + i];
      const Word is_filled = number != 0;
      bits |= is_filled << i;
      *out = number;
      out += is_filled;
    }
    *word++ = bits;
  }
  return packed;
}

template <class Bits>
void unpack_matrix(std::span<const std::byte> matrix, std::uint64_t count, std::byte* to) {
  if (matrix.size() == count * sizeof(Bits)) {
    std::copy_n(matrix.data(), matrix.size(), to);
    return;
  }
  const auto* word = reinterpret_cast<const Word*>(matrix.data());
  const auto* in = reinterpret_cast<const Bits*>(matrix.data() + words_for(count) * sizeof(Word));
  auto* out = reinterpret_cast<Bits*>(to);
  for (std::uint64_t first = 0; first < count; first += kBits) {
    Word bits = *word++;
    const auto end = std::min(kBits, count - first);
    for (std::uint64_t i = 0; i < end; ++i, bits >>= 1) {
      *out++ = static_cast<Bits>(*in & static_cast<Bits>(-static_cast<Bits>(bits & 1)));
      in += bits & 1;
    }
  }
}

bool is_sound(std::span<const std::byte> matrix, std::uint64_t count, std::uint64_t size) {
  if (matrix.size() == count * size) return true;
  const auto words = words_for(count);
  if (matrix.size() < words * sizeof(Word) || matrix.size() > count * size) return false;
  std::uint64_t filled = 0;
  Word last = 0;
  for (std::uint64_t w = 0; w < words; ++w) {
    std::memcpy(&last, matrix.data() + w * sizeof(Word), sizeof(Word));
    filled += static_cast<std::uint64_t>(std::popcount(last));
  }
  const bool none_beyond = count % kBits == 0 || last >> (count % kBits) == 0;
  return none_beyond && matrix.size() == words * sizeof(Word) + filled * size;
}

}  // namespace

std::uint64_t wire_bytes(const Shape& shape, std::uint64_t rows, double filled) {
  const auto size = size_of(shape.row_type());
  const auto of = [&](std::uint64_t columns) {
    const auto count = rows * columns;
    const auto numbers = static_cast<std::uint64_t>(std::ceil(filled * static_cast<double>(count)));
    return stride(std::min(count * size, words_for(count) * sizeof(Word) + numbers * size));
  };
  return rounded_up(sizeof(PairHead) + of(shape.inputs) + of(shape.outputs), kLine);
}

std::uint64_t write(const Pair& pair, const Shape& shape, std::byte* to) {
  return by_size(shape.row_type(), [&]<class Bits>(Bits) {
    PairHead head{.rows = pair.rows};
    std::byte* const x = to + sizeof(PairHead);
    head.x_bytes = write_matrix<Bits>(pair.x, pair.rows * shape.inputs, x);
    std::byte* const g = x + stride(head.x_bytes);
    head.g_bytes = write_matrix<Bits>(pair.g, pair.rows * shape.outputs, g);
    std::memcpy(to, &head, sizeof(PairHead));
    std::byte* const end = to + rounded_up(static_cast<std::uint64_t>(g - to) + stride(head.g_bytes), kLine);
    std::fill(x + head.x_bytes, g, std::byte{0});  // what leaves is what was meant to
    std::fill(g + head.g_bytes, end, std::byte{0});
    return static_cast<std::uint64_t>(end - to);
  });
}

Written read(std::span<const std::byte> from, const Shape& shape) {
  const auto wrong = [] { return Error(Code::mismatch, "a layer's pair is not what its rows say", "exchange", "run the same build on every member"); };
  PairHead head;
  if (from.size() < sizeof(PairHead)) throw wrong();
  std::memcpy(&head, from.data(), sizeof(PairHead));
  const auto rest = from.size() - sizeof(PairHead), most = head.rows * shape.row_bytes();
  if (head.rows > kMostRows || head.zero != 0 || head.x_bytes > most || head.g_bytes > most) throw wrong();
  if (rest < stride(head.x_bytes) + stride(head.g_bytes)) throw wrong();
  const Written written{head.rows, from.subspan(sizeof(PairHead), head.x_bytes), from.subspan(sizeof(PairHead) + stride(head.x_bytes), head.g_bytes)};
  const auto size = size_of(shape.row_type());
  if (!is_sound(written.x, head.rows * shape.inputs, size) || !is_sound(written.g, head.rows * shape.outputs, size)) throw wrong();
  return written;
}

void unpack(std::span<const std::byte> matrix, DType type, std::uint64_t count, std::byte* to) {
  by_size(type, [&]<class Bits>(Bits) { unpack_matrix<Bits>(matrix, count, to); });
}

}  // namespace shoal::factor
