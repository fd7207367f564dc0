// Samples with few numbers other than zero, row after row (compressed sparse rows): sample i has the numbers values[offsets[i]] to
// values[offsets[i + 1] - 1] in the columns of the same places, which ascend, and the label labels[i]. Columns count from 0.
// Values; share across threads while nobody changes them.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::data {

struct SparseRow {
  double label;
  std::span<const std::uint32_t> columns;
  std::span<const float> values;
};

inline double squared_norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum;
}

// Consecutive samples of a SparseRows, valid while that is there and unchanged. offsets[0] need not be 0: offsets point into the whole.
struct SparseSlice {
  std::span<const std::uint64_t> offsets;  // one more than samples
  std::span<const std::uint32_t> columns;  // the whole's
  std::span<const float> values;           // the whole's
  std::span<const double> labels;

  std::size_t size() const { return labels.size(); }
  SparseRow operator[](std::size_t i) const {
    const std::uint64_t from = offsets[i], count = offsets[i + 1] - from;
    return {labels[i], columns.subspan(from, count), values.subspan(from, count)};
  }
};

struct SparseRows {
  std::vector<std::uint64_t> offsets = {0};
  std::vector<std::uint32_t> columns;
  std::vector<float> values;
  std::vector<double> labels;
  std::uint32_t width = 0;  // columns there are; those of the data, not only of these rows

  std::size_t size() const { return labels.size(); }
  SparseSlice slice(std::size_t begin, std::size_t count) const {
    assert(begin + count <= size());
    return {std::span(offsets).subspan(begin, count + 1), columns, values, std::span(labels).subspan(begin, count)};
  }
  SparseSlice all() const { return slice(0, size()); }
  SparseRow operator[](std::size_t i) const { return all()[i]; }

  void append(const SparseRow& row) {
    columns.insert(columns.end(), row.columns.begin(), row.columns.end());
    values.insert(values.end(), row.values.begin(), row.values.end());
    labels.push_back(row.label);
    offsets.push_back(columns.size());
  }
  void append(const SparseSlice& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) append(rows[i]);
  }
  void drop_last() {
    labels.pop_back();
    offsets.pop_back();
    columns.resize(offsets.back());
    values.resize(offsets.back());
  }
  void clear() {  // the memory stays for the next
    offsets.resize(1);
    columns.clear();
    values.clear();
    labels.clear();
  }
};

}  // namespace shoal::data
