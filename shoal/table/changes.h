// Which columns of a row have changed, so that who has the others is sent no more than these.
//
// The columns of a table's rows are told apart as up to 64 blocks of equal length, of which the last may be shorter; some of them are the bits of a
// word. That may name more than have changed, never fewer.
//
//   changes   a message: keys, some blocks for each, and behind these the values of their columns, row by row
//
// Values; threads: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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
    const auto whole = static_cast<std::size_t>(std::popcount(blocks)) * block_;
    return (blocks >> last_ & 1) == 0 ? whole : whole - ((last_ + 1) * block_ - width_);
  }
  bool has(Blocks blocks) const { return blocks >> last_ <= 1; }
  // visit(first, count): the columns of each, in order.
  template <class Visit>
  void for_each(Blocks blocks, const Visit& visit) const {
    for (; blocks != 0; blocks &= blocks - 1) {
      const std::size_t first = static_cast<std::size_t>(std::countr_zero(blocks)) * block_;
      visit(first, std::min(block_, width_ - first));
    }
  }
  // Those that `values` change when they are added to the row; kWhole where a few columns say that it is nearly all of them.
  template <class T>
  Blocks changed_by(std::span<const T> values, std::span<const T> row) const;

 private:
  std::size_t width_, block_;                     // columns of a row, and of a block
  unsigned last_;                                 // block
  std::array<std::size_t, 8> spread_;             // columns all over the row
};

template <class T>
Blocks Columns::changed_by(std::span<const T> values, std::span<const T> row) const {
  const auto changes = [&](std::size_t column) {
    bool is_negative_zero = false;                // which 0 changes, too
    if constexpr (std::is_floating_point_v<T>) is_negative_zero = row[column] == 0 && std::signbit(row[column]);
    return values[column] != 0 || is_negative_zero;
  };
  if (std::ranges::all_of(spread_, changes)) return kWhole;
  Blocks blocks = 0;
  for (unsigned block = 0; block <= last_; ++block) {
    const std::size_t first = block * block_, end = std::min(first + block_, width_);
    bool any = false;
    for (std::size_t column = first; column < end; ++column) any |= changes(column);
    blocks |= Blocks{any} << block;
  }
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
