#include "shoal/nn/kept.h"

#include <ATen/ops/from_blob.h>

namespace shoal::nn {

std::map<std::string, at::Tensor> kept_of(exchange::Exchange& exchange) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [tensor, kept] : exchange.kept()) {
    all.emplace(exchange.plan().tensors[tensor].name + ": " + kept.name,
                at::from_blob(kept.data, {static_cast<std::int64_t>(kept.count)}, kept.type == DType::i64 ? at::kLong : at::kFloat));
  }
  return all;
}

void put_back_kept(exchange::Exchange& exchange, const std::map<std::string, at::Tensor>& kept) {
  for (auto& [name, mine] : kept_of(exchange)) {
    const auto found = kept.find(name);
    if (found != kept.end() && found->second.sizes() == mine.sizes()) mine.copy_(found->second);
  }
}

}  // namespace shoal::nn
