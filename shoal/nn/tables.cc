#include "shoal/nn/tables.h"

#include <ATen/Functions.h>

#include <cstring>

namespace shoal::nn {

Tables::Tables(const std::vector<NamedTensor>& parameters, const std::vector<Table>& announced) : of_(parameters.size()) {
  for (const auto& [i, sparse] : announced) {
    const auto& [name, tensor] = parameters.at(i);
    if (tensor.dim() != 2 || tensor.is_complex() || !tensor.is_contiguous()) continue;
    of_[i].name = name;
    of_[i].width = static_cast<std::uint64_t>(tensor.size(1));
    of_[i].sparse = sparse;
  }
}

void Tables::describe(std::vector<exchange::TensorSpec>& specs) const {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    specs[i].width = of_[i].width;
    specs[i].touched = of_[i].touched;
    specs[i].sparse = of_[i].sparse;
  }
}

void Tables::note(std::size_t i, const at::Tensor& gradient) {
  if (of_[i].width > 0) of_[i].noted = static_cast<std::uint64_t>(gradient.ne(0).any(1).sum().item<std::int64_t>());
}

exchange::Rows Tables::rows(std::size_t i, const at::Tensor& gradient) {
  auto& table = of_[i];
  if (gradient.sparse_dim() != 1 || gradient.dense_dim() != 1) {
    throw Error(Code::unsupported, "its gradient is sparse in " + std::to_string(gradient.sparse_dim()) + " dimensions", "parameter " + table.name,
                "only rows may be left out");
  }
  const auto whole = gradient.cpu().coalesce();
  table.index = whole.indices()[0].contiguous();
  table.values = whole.values().contiguous();
  table.noted = static_cast<std::uint64_t>(table.index.numel());
  return {table.noted, table.index.const_data_ptr<std::int64_t>(), static_cast<const std::byte*>(table.values.const_data_ptr())};
}

void Tables::clear() {
  for (auto& table : of_) {
    if (table.noted > 0) table.touched = table.noted;
    table.noted = 0;
    table.index = table.values = at::Tensor();
  }
}

at::Tensor sparse_mean(const exchange::Rows& rows, const at::Tensor& parameter, const std::function<at::Tensor(const at::Tensor&)>& placed) {
  const auto count = static_cast<std::int64_t>(rows.count);
  const auto index = at::empty({1, count}, at::kLong);
  const auto values = at::empty({count, parameter.size(1)}, parameter.options().device(at::kCPU).requires_grad(false));
  if (count > 0) {
    std::memcpy(index.mutable_data_ptr(), rows.index, index.nbytes());
    std::memcpy(values.mutable_data_ptr(), rows.values, values.nbytes());
  }
  return at::_sparse_coo_tensor_unsafe(placed(index), placed(values), parameter.sizes())._coalesced_(true);
}

}  // namespace shoal::nn
