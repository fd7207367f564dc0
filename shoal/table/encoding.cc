#include "shoal/table/encoding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "shoal/core/error.h"
#include "shoal/table/magnitudes.h"

namespace shoal::table {
namespace {

constexpr const char* kEncodingNames[] = {"none", "bf16", "int8"};
constexpr int kMost = 127;                             // of a byte
constexpr int kLeast = -126;
using Exponent = std::int16_t;

// Round to nearest even; too large becomes the largest, not a number stays none.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((rounded & 0x7f80) == 0x7f80 ? (rounded & 0x8000) | 0x7f7f : rounded);
}
float from_bf16(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

// The least exponent at which 127 steps reach that magnitude, but none whose opposite is no float; of zeros any.
Exponent exponent_for(double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  int exponent = 0;
  const double fraction = std::frexp(largest / kMost, &exponent);  // in [0.5, 1)
  return static_cast<Exponent>(std::max(fraction == 0.5 ? exponent - 1 : exponent, kLeast));
}

template <class T>
Exponent exponent_of(std::span<const T> row) {
  return exponent_for(max_norm(row));
}

// The most steps of 2^exponent whose sum is a number of that type.
template <class T>
T most_steps(Exponent exponent) {
  return static_cast<T>(std::min<double>(kMost, std::floor(std::ldexp(static_cast<double>(std::numeric_limits<T>::max()), -exponent))));
}

// To nearest, halves to even: without a call for each.
template <class T>
T nearest(T value) {
  constexpr T shift = std::is_same_v<T, float> ? T(12582912) : T(6755399441055744);  // 1.5 x 2^23 and 2^52: a sum with it has no fractions
  return value + shift - shift;
}

}  // namespace

const char* name(Encoding encoding) { return kEncodingNames[static_cast<int>(encoding)]; }

Encoding encoding_from(const std::string& text) {
  const auto found = std::find(std::begin(kEncodingNames), std::end(kEncodingNames), text);
  if (found != std::end(kEncodingNames)) return static_cast<Encoding>(found - std::begin(kEncodingNames));
  throw Error(Code::invalid_argument, "no rows travel as \"" + text + "\"", "encoding", "one of none, bf16 and int8");
}

std::size_t encoded_bytes(Encoding encoding, std::size_t width, std::size_t bytes_a_value) {
  if (encoding == Encoding::none) return width * bytes_a_value;
  return encoding == Encoding::bf16 ? width * sizeof(std::uint16_t) : width + sizeof(Exponent);
}

template <class T>
void round(Encoding encoding, std::span<T> row) {
  if constexpr (std::is_floating_point_v<T>) {
    if (encoding == Encoding::bf16) {
      for (T& value : row) value = static_cast<T>(from_bf16(to_bf16(static_cast<float>(value))));
    } else if (encoding == Encoding::int8) {
      const Exponent exponent = exponent_of(std::span<const T>(row));
      const T step = static_cast<T>(std::ldexp(1.0, exponent)), per_step = static_cast<T>(std::ldexp(1.0, -exponent));
      const T most = most_steps<T>(exponent);
      for (T& value : row) value = std::clamp<T>(nearest(value * per_step), -most, most) * step;
    }
  }
}

template <class T>
double step_at(Encoding encoding, std::span<const T> row, std::size_t column) {
  if (encoding == Encoding::none) return 0;
  return encoding == Encoding::bf16 ? std::max(std::abs(static_cast<double>(row[column])) / 128, 0x1p-133) : std::ldexp(1.0, exponent_of(row));
}

template <class T>
void encode(Encoding encoding, std::span<const T> row, std::byte* into) {
  if (encoding == Encoding::bf16) {
    for (const T value : row) {
      const std::uint16_t half = to_bf16(static_cast<float>(value));
      std::memcpy(into, &half, sizeof half);
      into += sizeof half;
    }
    return;
  }
  const Exponent exponent = exponent_of(row);
  std::memcpy(into, &exponent, sizeof exponent);
  auto* const bytes = reinterpret_cast<std::int8_t*>(into + sizeof exponent);
  const T per_step = static_cast<T>(std::ldexp(1.0, -exponent)), most = most_steps<T>(exponent);
  for (std::size_t i = 0; i < row.size(); ++i) bytes[i] = static_cast<std::int8_t>(std::clamp<T>(nearest(row[i] * per_step), -most, most));
}

template <class T>
void decode(Encoding encoding, const std::byte* from, std::span<T> row) {
  if (encoding == Encoding::bf16) {
    for (T& value : row) {
      std::uint16_t half = 0;
      std::memcpy(&half, from, sizeof half);
      value = static_cast<T>(from_bf16(half));
      from += sizeof half;
    }
    return;
  }
  Exponent exponent = 0;
  std::memcpy(&exponent, from, sizeof exponent);
  const auto* const bytes = reinterpret_cast<const std::int8_t*>(from + sizeof exponent);
  const T step = static_cast<T>(std::ldexp(1.0, exponent));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<T>(bytes[i]) * step;
}

template void round(Encoding, std::span<float>);
template void round(Encoding, std::span<double>);
template double step_at(Encoding, std::span<const float>, std::size_t);
template double step_at(Encoding, std::span<const double>, std::size_t);
template void encode(Encoding, std::span<const float>, std::byte*);
template void encode(Encoding, std::span<const double>, std::byte*);
template void decode(Encoding, const std::byte*, std::span<float>);
template void decode(Encoding, const std::byte*, std::span<double>);

}  // namespace shoal::table
