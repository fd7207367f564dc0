#include "shoal/learn/neighbours.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace shoal::learn {

float squared_distance(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

Distances distances(std::span<const float> samples, std::span<const float> known, std::size_t dimensions) {
  return [=](std::size_t sample, std::span<float> squared) {
    const auto point = samples.subspan(sample * dimensions, dimensions);
    for (std::size_t i = 0; i < squared.size(); ++i) squared[i] = squared_distance(point, known.subspan(i * dimensions, dimensions));
  };
}

// |x - y|^2 = |x|^2 + sum over the columns of y of (x - y)^2 - x^2
Distances distances(const data::SparseRows& samples, const data::SparseRows& known) {
  std::vector<double> scattered(std::max(samples.width, known.width));
  return [&, scattered = std::move(scattered)](std::size_t sample, std::span<float> squared) mutable {
    const data::SparseRow x = samples[sample];
    for (std::size_t k = 0; k < x.columns.size(); ++k) scattered[x.columns[k]] = x.values[k];
    const double norm = data::squared_norm(x.values);
    for (std::size_t i = 0; i < squared.size(); ++i) {
      const data::SparseRow y = known[i];
      double sum = norm;
      for (std::size_t k = 0; k < y.columns.size(); ++k) sum += y.values[k] * (y.values[k] - 2 * scattered[y.columns[k]]);
      squared[i] = static_cast<float>(std::max(0.0, sum));
    }
    for (const std::uint32_t column : x.columns) scattered[column] = 0;
  };
}

double vote(std::span<const float> squared, std::span<const double> classes, std::size_t k, std::optional<std::size_t> except) {
  std::vector<std::pair<float, std::size_t>> nearest;
  nearest.reserve(squared.size());
  for (std::size_t i = 0; i < squared.size(); ++i) {
    if (except != i) nearest.emplace_back(squared[i], i);
  }
  if (nearest.empty()) return std::numeric_limits<double>::quiet_NaN();
  k = std::min(k, nearest.size());
  std::partial_sort(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(k), nearest.end());
  nearest.resize(k);
  const auto votes = [&](double of) {
    return std::count_if(nearest.begin(), nearest.end(), [&](const auto& one) { return classes[one.second] == of; });
  };
  double best = classes[nearest[0].second];
  for (std::size_t i = 1; i < k; ++i) {
    if (votes(classes[nearest[i].second]) > votes(best)) best = classes[nearest[i].second];
  }
  return best;
}

std::size_t rightly_voted(const Distances& distances, std::span<const double> classes, std::span<const double> known, std::size_t k) {
  std::vector<float> squared(known.size());
  std::size_t right = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    distances(i, squared);
    right += vote(squared, known, k) == classes[i] ? 1 : 0;
  }
  return right;
}

std::size_t rightly_voted(const Distances& distances, std::span<const double> classes, std::size_t k) {
  std::vector<float> squared(classes.size());
  std::size_t right = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    distances(i, squared);
    right += vote(squared, classes, k, i) == classes[i] ? 1 : 0;
  }
  return right;
}

double pair_auc(const Distances& distances, std::span<const double> classes) {
  std::vector<std::pair<float, bool>> pairs;  // distance, of one class
  std::vector<float> squared(classes.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    distances(i, std::span(squared).first(i));
    for (std::size_t j = 0; j < i; ++j) pairs.emplace_back(squared[j], classes[i] == classes[j]);
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
