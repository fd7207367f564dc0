// DataParallel's pairs: which are taken in place of their product, and what becomes of those that no exchange has taken yet.
#include <ATen/core/grad_mode.h>

#include "shoal/exchange/way.h"
#include "shoal/nn/data_parallel.h"

namespace shoal::nn {

at::ScalarType DataParallel::type_of_rows(std::size_t i) const {
  return exchange_->plan().tensors[i].bf16_rows ? at::kBFloat16 : at::kFloat;
}

bool DataParallel::wants_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g, bool goes_on) {
  before_accumulation(i);  // completes an iteration that is open, and its end may change the plan
  pairs_.note(i, x, g, goes_on, !plan_is_final_ && exchange_->iteration() == 0);  // once: it would lengthen the backward pass that is measured
  if (!exchange_->by_factors(static_cast<std::uint32_t>(i)) || !hooks_->pass_stores_gradients()) return false;
  if (x.scalar_type() != at::kBFloat16 && x.scalar_type() != type_of_rows(i)) return false;  // f32 rows would lose digits
  if (synchronize_ && !pairs_.holds(i)) return !pairs_.given_up(i);
  if (pairs_.may_hold(i, static_cast<std::uint64_t>(x.size(0)), exchange_->plan().tensors[i].layer())) return true;
  multiply_held(i);
  return false;
}

// The accumulator of the weight follows, with whatever other uses of the weight gave: there the pair is accounted for.
void DataParallel::take_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g) {
  if (synchronize_) return pairs_.add(i, x, g);
  pairs_.hold(i, x, g);
}

// What no_sync() left in pairs goes where autograd would have put it.
void DataParallel::multiply_held(std::size_t i) {
  const at::NoGradGuard as_autograd_adds;
  const auto product = pairs_.multiply_held(i);
  if (!product.defined()) return;
  auto& gradient = parameters_[i].tensor.mutable_grad();
  gradient = gradient.defined() ? gradient.add_(product) : product;
}

void DataParallel::multiply_all_held() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) multiply_held(i);
}

bool DataParallel::holds_pairs() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (pairs_.holds(i)) return true;
  }
  return false;
}

void DataParallel::account_pair(std::size_t i) {
  auto rest = weight_ > 0 ? contribution(i) : at::Tensor();
  if (!says_something(rest)) rest.reset();
  const auto tensor = static_cast<std::uint32_t>(i);
  const std::lock_guard lock(leaving_);
  auto& own = pairs_.gather(i, type_of_rows(i), rest);
  std::vector<at::Tensor*> parts;
  for (auto* part : {&own.x, &own.g, &own.rest}) {
    if (part->defined()) parts.push_back(part);
  }
  if (weight_ == 0 || parts.empty()) return exchange_->absent(tensor);
  leave(i, parts, [this, tensor, &own] { exchange_->produced(tensor, as_pair(own)); });
}

}  // namespace shoal::nn
