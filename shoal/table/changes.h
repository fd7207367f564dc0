// Which columns of a row have changed, so that who has the others is sent no more than these.
//
// The columns of a table's rows are told apart as up to 64 blocks of a power of two of them each, but for the last, which may be shorter; some of these
// are the bits of a word. That may name more than have changed, never fewer.
//
//   changes   a message: keys, some blocks for each, and behind these the values of their columns, row by row
//
// Values; threads: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "shoal/table/message.h"

namespace shoal::table {

using Blocks = std::uint64_t;                     // bit b: the b-th block of columns
inline constexpr Blocks kWhole = ~Blocks{0};      // all, of however many a row has

struct Change {
  std::uint32_t number;                           // of the row
  Blocks blocks;
  bool operator==(const Change&) const = default;
};

class Columns {                                   // of a table's rows
 public:
  explicit Columns(std::size_t width);

  // How many columns are in these blocks; has(): whether a row has them all.
  std::size_t count(Blocks blocks) const {
    const auto whole = static_cast<std::size_t>(std::popcount(blocks)) << shift_;
    return (blocks >> last_ & 1) == 0 ? whole : whole - ((std::size_t{last_} + 1) << shift_) + width_;
  }
  bool has(Blocks blocks) const { return blocks >> last_ <= 1; }
  // visit(first, count): the columns of each, in order.
  template <class Visit>
  void for_each(Blocks blocks, const Visit& visit) const {
    for (; blocks != 0; blocks &= blocks - 1) {
      const std::size_t first = static_cast<std::size_t>(std::countr_zero(blocks)) << shift_;
      visit(first, std::min(std::size_t{1} << shift_, width_ - first));
    }
  }
  // Those that `values` change when they are added to the row; kWhole where a few columns say that it is nearly all of them.
  template <class T>
  Blocks changed_by(std::span<const T> values, std::span<const T> row) const;

 private:
  std::size_t width_;
  unsigned shift_, last_;                         // log2 of the columns of a block; the last block
  std::array<std::size_t, 8> spread_;             // columns all over the row
};

template <class T>
Blocks Columns::changed_by(std::span<const T> values, std::span<const T> row) const {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  const auto bits = [&](std::size_t column) {     // 0: it stays as it is
    const auto value = std::bit_cast<Bits>(values[column]);
    const bool is_minus_zero = std::is_floating_point_v<T> && std::bit_cast<Bits>(row[column]) == std::bit_cast<Bits>(T(-0.0));
    return is_minus_zero ? ~Bits{0} : value;      // for then adding 0 makes it 0
  };
  if (std::ranges::all_of(spread_, bits)) return kWhole;
  Blocks blocks = 0;
  const auto look = [&](std::size_t first, std::size_t count) {
    Bits any = 0;
    for (std::size_t i = 0; i < count; ++i) any |= bits(first + i);
    for (std::size_t i = 0; any != 0 && i < count; ++i) blocks |= Blocks{bits(first + i) != 0} << ((first + i) >> shift_);
  };
  constexpr std::size_t at_once = 16;             // mostly zeros
  std::size_t first = 0;
  for (; first + at_once <= width_; first += at_once) look(first, at_once);
  look(first, width_ - first);
  return blocks;
}

// What a message of kind changes has, beside its keys.
inline std::span<const Blocks> blocks_of(const Message& changes) {
  return {reinterpret_cast<const Blocks*>(changes.body.data()) + changes.header.count, changes.header.count};
}
template <class T>
const T* values_of(const Message& changes) {
  return reinterpret_cast<const T*>(changes.body.data() + changes.header.count * (sizeof(Key) + sizeof(Blocks)));
}

// Why its body cannot be one; empty: it can. The header has been looked at (message.h).
std::string fault_of(const Message& changes, const Columns& columns, std::size_t bytes_a_value);

}  // namespace shoal::table
