// What is added to a table is finite: one value that is not would spread to whoever reads its row. Threads: pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "shoal/core/error.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

// Whether none is an infinity or not a number: then all bits of some exponent are set. Without a branch a value.
template <class T>
bool finite(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits wrong = 0;
  for (const T value : values) wrong |= static_cast<Bits>((std::bit_cast<Bits>(value) & exponent) == exponent);
  return wrong == 0;
}

// Throws Error{invalid_argument} naming the first row that has one; rows one below the other.
template <class T>
void check_finite(std::span<const Key> keys, std::span<const T> values, const std::string& table) {
  if constexpr (std::is_floating_point_v<T>) {
    if (finite(values)) return;
    const auto wrong = std::ranges::find_if_not(values, [](T value) { return std::isfinite(value); });
    const auto row = static_cast<std::size_t>(wrong - values.begin()) / (values.size() / keys.size());
    throw Error(Code::invalid_argument, "row " + std::to_string(keys[row]) + " was given the value " + std::to_string(*wrong), "table " + table,
                "nothing of this call was taken; look at the step size and the data");
  }
}

}  // namespace shoal::table
