// What is added to a table is finite, unless its users want otherwise: one value that is not spreads to whoever reads its row. Threads: pure functions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/core/finite.h"
#include "shoal/core/helping.h"
#include "shoal/table/row_map.h"

namespace shoal::table {

inline constexpr std::size_t kPieceBytes = 16 * 1024;  // stay in the nearest cache

// Whether none is an infinity or not a number. Integers never are.
template <class T>
bool finite(std::span<const T> values) {
  if constexpr (std::is_floating_point_v<T>) return all_finite(values);
  return true;
}

// into[i] = from[i]; whether these are finite.
template <class T>
bool set_finite(std::span<T> into, std::span<const T> from) {
  if constexpr (std::is_floating_point_v<T>) {
    std::atomic<bool> all = true;
    with_help(into.size(), sizeof(T), [&](std::size_t begin, std::size_t end) {
      if (!copy_finite(into.subspan(begin, end - begin), from.subspan(begin, end - begin))) all = false;
    });
    return all;
  } else {
    set<T>(into, from);
    return true;
  }
}

// What becomes of values that are not.
enum class NotFinite : std::uint8_t {
  refuse,  // the call that has one
  clip,    // infinities become the largest value of their sign, what is not a number becomes 0
  pass,    // nothing
};
const char* name(NotFinite policy);
NotFinite not_finite_from(const std::string& text);  // throws Error{invalid_argument} that lists them

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

// The values as a table takes them; `room` holds them where they are others.
template <class T>
std::span<const T> admitted(NotFinite policy, std::span<const Key> keys, std::span<const T> values, const std::string& table, std::vector<T>& room) {
  if constexpr (std::is_floating_point_v<T>) {
    if (policy == NotFinite::refuse) check_finite(keys, values, table);
    if (policy != NotFinite::clip || finite(values)) return values;
    constexpr T largest = std::numeric_limits<T>::max();
    room.assign(values.begin(), values.end());
    for (T& value : room) value = std::isnan(value) ? 0 : std::clamp(value, -largest, largest);
    return room;
  }
  return values;
}

}  // namespace shoal::table
