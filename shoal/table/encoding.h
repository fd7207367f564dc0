// How rows travel: as they are, or rounded to fewer bytes.
//
//   none   the values, 4 or 8 bytes each
//   bf16   2 bytes each: 8 digits of the fraction, round to nearest even; what is too large for it is its largest
//   int8   1 byte each, and 2 for the row: value = byte * 2^exponent, with the least exponent at which the largest magnitude fits
//
// What has been rounded is rounded to itself, to the bit; so both ends agree on what travelled. Values; threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shoal::table {

enum class Encoding : std::uint8_t { none, bf16, int8 };
const char* name(Encoding encoding);
Encoding encoding_from(const std::string& text);       // throws Error{invalid_argument} that lists them

std::size_t encoded_bytes(Encoding encoding, std::size_t width, std::size_t bytes_a_value);  // of a row, without its key

// A row to or from as many bytes of either. T: float or double, here and below; `none` has no need of it.
template <class T>
void encode(Encoding encoding, std::span<const T> row, std::byte* into);
template <class T>
void decode(Encoding encoding, const std::byte* from, std::span<T> row);
// The row becomes what it is at the other end.
template <class T>
void round(Encoding encoding, std::span<T> row);
// The distance between two values next to each other, about where this one is in its row.
template <class T>
double step_at(Encoding encoding, std::span<const T> row, std::size_t column);

}  // namespace shoal::table
