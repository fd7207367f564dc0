#include "shoal/learn/topic/alias.h"

#include <algorithm>
#include <numeric>

namespace shoal::learn::topic {

void Alias::build(std::span<const double> weights) {
  constexpr std::int64_t height = std::int64_t{1} << 31;
  const auto all = static_cast<std::int64_t>(weights.size()) * height;
  const double scale = static_cast<double>(all) / std::accumulate(weights.begin(), weights.end(), 0.0);
  unit_ = 1 / static_cast<double>(all);
  units_.resize(weights.size());
  std::ranges::transform(weights, units_.begin(), [&](double weight) { return static_cast<std::int64_t>(weight * scale); });
  // What rounding left goes to the largest: it has at least a bin of units, and hardly notices.
  *std::ranges::max_element(units_) += all - std::accumulate(units_.begin(), units_.end(), std::int64_t{0});

  bins_.resize(weights.size());
  left_ = units_;
  below_.clear();
  above_.clear();
  for (std::uint32_t i = 0; i < left_.size(); ++i) (left_[i] < height ? below_ : above_).push_back(i);
  // A bin that its own weight does not fill is filled by one that has more.
  while (!below_.empty()) {
    const std::uint32_t less = below_.back(), more = above_.back();
    below_.pop_back();
    bins_[less] = {static_cast<std::uint32_t>(left_[less]), more};
    left_[more] -= height - left_[less];
    if (left_[more] >= height) continue;
    above_.pop_back();
    below_.push_back(more);
  }
  for (const std::uint32_t i : above_) bins_[i] = {static_cast<std::uint32_t>(height), i};
}

}  // namespace shoal::learn::topic
