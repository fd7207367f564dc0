// Many rows of a table at a time, in parts that bound what is on its way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "shoal/learn/tensor_file.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

// begin, begin + stride, ... below end. A member's share of all rows: {rank, rows, size}.
struct KeyRange {
  table::Key begin = 0, end = 0, stride = 1;
  std::size_t size() const { return begin < end ? (end - begin + stride - 1) / stride : 0; }
};

// Calls each(keys, rows of them) for parts; `values` has a row for each key. The keys are a range, or any.
template <class Value, class Each>
void in_parts(std::span<const table::Key> keys, std::size_t width, std::span<Value> values, const Each& each) {
  constexpr std::size_t rows_at_once = 4096;
  for (std::size_t from = 0; from < keys.size(); from += rows_at_once) {
    const std::size_t rows = std::min(rows_at_once, keys.size() - from);
    each(keys.subspan(from, rows), values.subspan(from * width, rows * width));
  }
}

inline std::vector<table::Key> keys_in(const KeyRange& range) {
  std::vector<table::Key> keys;
  keys.reserve(range.size());
  for (table::Key key = range.begin; key < range.end; key += range.stride) keys.push_back(key);
  return keys;
}

template <class Value>
void read_rows(table::Table<Value>& table, std::span<const table::Key> keys, std::type_identity_t<std::span<Value>> values) {
  in_parts(keys, table.width(), values, [&](auto part, auto rows) { table.read(part, rows); });
}
template <class Value>
void assign_rows(table::Table<Value>& table, std::span<const table::Key> keys, std::type_identity_t<std::span<const Value>> values) {
  in_parts(keys, table.width(), values, [&](auto part, auto rows) { table.assign(part, rows); });
}
template <class Value>
void read_rows(table::Table<Value>& table, const KeyRange& range, std::type_identity_t<std::span<Value>> values) {
  read_rows(table, keys_in(range), values);
}
template <class Value>
void assign_rows(table::Table<Value>& table, const KeyRange& range, std::type_identity_t<std::span<const Value>> values) {
  assign_rows(table, keys_in(range), values);
}

// The rows as 32-bit numbers of a model.
template <class Value>
Tensor tensor_from(table::Table<Value>& table, const KeyRange& range) {
  std::vector<Value> rows(range.size() * table.width());
  read_rows(table, range, rows);
  return {{range.size(), table.width()}, std::vector<float>(rows.begin(), rows.end())};
}

}  // namespace shoal::learn
