#include "shoal/learn/metric_map.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::learn {
namespace {

float squared_distance(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

}  // namespace

MetricMap MetricMap::from(const ModelFolder& folder) {
  return folder.understood("metric", [&](const Json& config) {
    MetricMap map{config.at("columns").get<std::uint32_t>(), config.at("dimensions").get<std::uint32_t>(), {}};
    map.values = tensor_of(folder.model().tensors, "map", {map.columns, map.dimensions}).values;
    return map;
  });
}

std::vector<float> MetricMap::operator()(const data::SparseRow& sample) const {
  std::vector<float> point(dimensions);
  for (std::size_t i = 0; i < sample.columns.size() && sample.columns[i] < columns; ++i) {
    const float* row = &values[std::size_t{sample.columns[i]} * dimensions];
    for (std::uint32_t k = 0; k < dimensions; ++k) point[k] += sample.values[i] * row[k];
  }
  return point;
}

void Neighbourhood::add(std::vector<float> point, double label) {
  points_.push_back(std::move(point));
  labels_.push_back(label);
}

double Neighbourhood::vote(std::span<const float> point, std::size_t k, std::optional<std::size_t> except) const {
  std::vector<std::pair<float, std::size_t>> nearest;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (except != i) nearest.emplace_back(squared_distance(point, points_[i]), i);
  }
  if (nearest.empty()) return std::numeric_limits<double>::quiet_NaN();
  k = std::min(k, nearest.size());
  std::partial_sort(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(k), nearest.end());
  const auto votes = [&](double label) {
    return std::count_if(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(k), [&](const auto& one) { return labels_[one.second] == label; });
  };
  double best = labels_[nearest[0].second];
  for (std::size_t i = 1; i < k; ++i) {
    if (votes(labels_[nearest[i].second]) > votes(best)) best = labels_[nearest[i].second];
  }
  return best;
}

double Neighbourhood::leave_one_out(std::size_t k) const {
  std::size_t right = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) right += vote(points_[i], k, i) == labels_[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(points_.size());
}

double Neighbourhood::pair_auc() const {
  std::vector<std::pair<float, bool>> pairs;  // distance, of one class
  for (std::size_t i = 0; i < points_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) pairs.emplace_back(squared_distance(points_[i], points_[j]), labels_[i] == labels_[j]);
  }
  std::sort(pairs.begin(), pairs.end());
  double alike = 0, ordered = 0;  // pairs of one class so far; (pair of one, pair of two) in the right order
  for (std::size_t from = 0, to = 0; from < pairs.size(); from = to) {
    double equal_alike = 0;
    for (to = from; to < pairs.size() && pairs[to].first == pairs[from].first; ++to) equal_alike += pairs[to].second ? 1 : 0;
    ordered += (static_cast<double>(to - from) - equal_alike) * (alike + equal_alike / 2);
    alike += equal_alike;
  }
  return ordered / (alike * (static_cast<double>(pairs.size()) - alike));
}

}  // namespace shoal::learn
