// A linear map under which samples of one class lie near each other (neighbours.h tells whether they do). Values; threads: any that only read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/data/sparse_rows.h"
#include "shoal/learn/model_folder.h"

namespace shoal::learn {

struct MetricMap {
  std::uint32_t columns = 0, dimensions = 0;
  std::vector<float> values;  // a row of `dimensions` for each column

  // Throws Error{invalid_argument} for a folder whose files are none of shoal metric, or do not fit each other.
  static MetricMap from(const ModelFolder& folder);
  // L x. Columns that the map does not know are left out.
  std::vector<float> operator()(const data::SparseRow& sample) const;
  // The same of all samples, one behind the other.
  std::vector<float> operator()(const data::SparseSlice& samples) const;
};

}  // namespace shoal::learn
