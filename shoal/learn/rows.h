// Many rows of a table at a time, in parts that bound what is on its way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "shoal/table/tables.h"

namespace shoal::learn {

// begin, begin + stride, ... below end. A member's share of all rows: {rank, rows, size}.
struct KeyRange {
  table::Key begin = 0, end = 0, stride = 1;
  std::size_t size() const { return begin < end ? (end - begin + stride - 1) / stride : 0; }
};

// Calls each(keys, rows of them) for parts of the range; `values` has a row for each of its keys.
template <class Value, class Each>
void in_parts(const KeyRange& range, std::size_t width, std::span<Value> values, const Each& each) {
  constexpr std::size_t rows_at_once = 4096;
  std::vector<table::Key> keys;
  for (std::size_t from = 0; from < range.size(); from += keys.size()) {
    keys.clear();
    for (std::size_t row = from; row < std::min(from + rows_at_once, range.size()); ++row) keys.push_back(range.begin + row * range.stride);
    each(std::span<const table::Key>(keys), values.subspan(from * width, keys.size() * width));
  }
}

inline void read_rows(table::Table<float>& table, const KeyRange& range, std::span<float> values) {
  in_parts(range, table.width(), values, [&](auto keys, auto rows) { table.read(keys, rows); });
}
inline void assign_rows(table::Table<float>& table, const KeyRange& range, std::span<const float> values) {
  in_parts(range, table.width(), values, [&](auto keys, auto rows) { table.assign(keys, rows); });
}

}  // namespace shoal::learn
