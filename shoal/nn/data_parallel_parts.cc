// DataParallel's parameters of which every member steps a part (exchange/owned_parts.h): where the mean of the own one is, and how stepped parts come back.
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "shoal/nn/data_parallel.h"

namespace shoal::nn {

void DataParallel::set_by_element(const std::vector<std::size_t>& parameters) {
  std::fill(by_element_.begin(), by_element_.end(), false);
  for (const auto i : parameters) by_element_.at(i) = staging_.at(i) == nullptr;
}

void DataParallel::install_part(std::size_t i) {
  const double waited_before = exchange_->waited();
  const auto tensor = static_cast<std::uint32_t>(i);
  auto& [parts, mean, given, whole] = owned_.at(i);
  const auto* reduced = exchange_->result(tensor);
  communication_.exposed += exchange_->waited() - waited_before;
  installed_[i] = true;
  mean.reset();
  if (!reduced) return;
  mean = at::from_blob(const_cast<void*>(reduced), {static_cast<std::int64_t>(parts.size(session_.rank()))},
                       [memory = exchange_->memory(tensor)](void*) {}, at::kFloat);
  parameters_[i].tensor.mutable_grad().reset();
}

void DataParallel::give_back(std::size_t i) {
  auto& [parts, mean, given, whole] = owned_.at(i);
  whole = parameters_[i].tensor.detach();
  given = whole.view({-1}).narrow(0, static_cast<std::int64_t>(parts.first(session_.rank())), static_cast<std::int64_t>(parts.size(session_.rank()))).clone();
  exchange_->give_back(static_cast<std::uint32_t>(i), given.const_data_ptr(), whole.mutable_data_ptr());
}

void DataParallel::returned(std::size_t i) {
  const double waited_before = exchange_->waited();
  exchange_->returned(static_cast<std::uint32_t>(i));
  communication_.exposed += exchange_->waited() - waited_before;
  auto& owned = owned_.at(i);
  owned.given.reset();
  owned.whole.reset();
}

}  // namespace shoal::nn
