#include "shoal/learn/centers.h"

#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::learn {

Centers::Centers(const ModelFolder& folder)
    : Centers(folder.understood("cluster-points", [&](const Json& config) {
        Centers centers(config.at("clusters").get<std::uint32_t>(), config.at("columns").get<std::uint32_t>());
        centers.set(tensor_of(folder.model().tensors, "centers", {centers.clusters(), centers.columns()}));
        return centers;
      })) {}

void Centers::changed() {
  std::fill(norms_.begin(), norms_.end(), 0.0);
  for (std::uint32_t c = 0; c < columns_; ++c) {
    const float* values = &values_[std::size_t{c} * clusters_];
    for (std::uint32_t j = 0; j < clusters_; ++j) norms_[j] += double{values[j]} * values[j];
  }
}

Centers::Nearest Centers::nearest(const data::SparseRow& sample) const {
  std::vector<double> products(clusters_);
  double norm = 0;
  for (std::size_t k = 0; k < sample.columns.size(); ++k) {
    const double value = sample.values[k];
    norm += value * value;
    if (sample.columns[k] >= columns_) continue;
    const float* values = &values_[std::size_t{sample.columns[k]} * clusters_];
    for (std::uint32_t j = 0; j < clusters_; ++j) products[j] += value * values[j];
  }
  Nearest nearest{0, norms_[0] - 2 * products[0]};
  for (std::uint32_t j = 1; j < clusters_; ++j) {
    const double distance = norms_[j] - 2 * products[j];
    if (distance < nearest.squared_distance) nearest = {j, distance};
  }
  nearest.squared_distance = std::max(nearest.squared_distance + norm, 0.0);
  return nearest;
}

Tensor Centers::tensor() const {
  Tensor tensor{{clusters_, columns_}, std::vector<float>(values_.size())};
  for (std::size_t c = 0; c < columns_; ++c) {
    for (std::size_t j = 0; j < clusters_; ++j) tensor.values[j * columns_ + c] = values_[c * clusters_ + j];
  }
  return tensor;
}

void Centers::set(const Tensor& tensor) {
  if (tensor.shape != std::vector<std::uint64_t>{clusters_, columns_}) throw Error(Code::mismatch, "the centers have another shape");
  for (std::size_t c = 0; c < columns_; ++c) {
    for (std::size_t j = 0; j < clusters_; ++j) values_[c * clusters_ + j] = tensor.values[j * columns_ + c];
  }
  changed();
}

}  // namespace shoal::learn
