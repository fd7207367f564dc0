// A linear map under which samples of one class lie near each other, and how to tell whether they do. Values; threads: any that only read.
#pragma once

#include <cstdint>
#include <optional>
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
};

// Samples in the space of a map, or as they are, with their classes.
class Neighbourhood {
 public:
  void add(std::vector<float> point, double label);
  std::size_t size() const { return labels_.size(); }
  // The class of most of the `k` nearest points, of several the one of the nearest; `except`: a point that does not count.
  double vote(std::span<const float> point, std::size_t k, std::optional<std::size_t> except = {}) const;
  // The share of points whose class their k nearest others vote for.
  double leave_one_out(std::size_t k) const;
  // Of all pairs of points: the chance that one of one class is nearer than one of two (the area under the ROC curve; equal distances count half). NaN where
  // there are no such pairs.
  double pair_auc() const;

 private:
  std::vector<std::vector<float>> points_;
  std::vector<double> labels_;
};

}  // namespace shoal::learn
