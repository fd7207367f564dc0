#include "shoal/nn/layer_pairs.h"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "shoal/core/time.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {
namespace {

at::ScalarType type_of_rows(const factor::Shape& shape) { return shape.bf16_rows ? at::kBFloat16 : at::kFloat; }

at::Tensor matrix(const std::byte* memory, std::uint64_t rows, std::uint64_t columns, at::ScalarType type) {
  return at::from_blob(const_cast<std::byte*>(memory), {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}, type);
}

}  // namespace

void LayerPairs::note(std::size_t i, const at::Tensor& x, const at::Tensor& g, bool goes_on, bool look_through) {
  noted_[i].rows += static_cast<std::uint64_t>(x.size(0));
  noted_[i].wide = noted_[i].wide || x.scalar_type() != at::kBFloat16;
  noted_[i].goes_on = noted_[i].goes_on || goes_on;
  if (!look_through || x.size(0) == 0) return;
  const auto not_zero = [](const at::Tensor& t) { return t.count_nonzero().item<double>(); };
  filled_[i] = (not_zero(x) + not_zero(g)) / static_cast<double>(x.numel() + g.numel());
}

void LayerPairs::hold(std::size_t i, const at::Tensor& x, const at::Tensor& g) {
  add(i, x.clone(), g.clone());
  held_[i] += static_cast<std::uint64_t>(x.size(0));
}

bool LayerPairs::may_hold(std::size_t i, std::uint64_t rows, const factor::Shape& shape) const {
  return !given_up_[i] && (held_[i] + rows) * (shape.inputs + shape.outputs) <= shape.inputs * shape.outputs;
}

at::Tensor LayerPairs::multiply_held(std::size_t i) {
  at::Tensor sum;
  if (held_[i] == 0) return sum;
  for (const auto& [x, g] : std::exchange(uses_[i], {})) {
    const auto product = g.t().mm(x).to(at::kFloat);
    sum = sum.defined() ? sum.add_(product) : product;
  }
  held_[i] = 0;
  given_up_[i] = true;
  return sum;
}

LayerPairs::Kept& LayerPairs::gather(std::size_t i, at::ScalarType type, const at::Tensor& rest) {
  auto& uses = uses_[i];
  auto& kept = kept_[i];
  std::vector<at::Tensor> x, g;
  for (const Use& use : uses) {
    x.push_back(use.x.to(type));
    g.push_back(use.g.to(type));
  }
  // Copied: before the step is taken a user may well put the next batch where this layer's input lies.
  kept = {x.empty() ? at::Tensor() : at::cat(x), g.empty() ? at::Tensor() : at::cat(g), rest};
  uses.clear();
  held_[i] = 0;
  return kept;
}

factor::Pair as_pair(const LayerPairs::Kept& on_host) {
  const auto& [x, g, rest] = on_host;
  return {x.defined() ? static_cast<std::uint64_t>(x.size(0)) : 0, bytes_of(x), bytes_of(g), bytes_of(rest)};
}

void LayerPairs::clear() {
  latest_.swap(noted_);
  std::fill(noted_.begin(), noted_.end(), Noted());
  for (auto& uses : uses_) uses.clear();
  std::fill(held_.begin(), held_.end(), 0);
  std::fill(given_up_.begin(), given_up_.end(), false);
  std::fill(kept_.begin(), kept_.end(), Kept());
}

at::Tensor multiply(const factor::Gathered& gathered, const factor::Shape& shape, const std::function<at::Tensor(const at::Tensor&)>& placed) {
  at::Tensor mean;
  if (gathered.total > 0) {
    auto x = placed(matrix(gathered.x, gathered.total, shape.inputs, type_of_rows(shape)));
    auto g = placed(matrix(gathered.g, gathered.total, shape.outputs, type_of_rows(shape)));
    if (!gathered.weight.empty()) {
      std::vector<float> of_row;
      for (std::size_t rank = 0; rank < gathered.rows.size(); ++rank) {
        of_row.insert(of_row.end(), gathered.rows[rank], static_cast<float>(gathered.weight[rank]));
      }
      g = at::mul(g, placed(at::tensor(of_row)).unsqueeze(1));  // in f32, whatever the rows are in
      x = x.to(at::kFloat);
    }
    mean = g.t().mm(x).to(at::kFloat);
    if (gathered.divisor != 1) mean.div_(gathered.divisor);
  }
  if (!gathered.rest) return mean;
  const auto rest = placed(matrix(gathered.rest, shape.outputs, shape.inputs, at::kFloat));
  return mean.defined() ? mean.add_(rest) : rest.clone();
}

MultiplyRates multiply_rates(const factor::Shape& shape, std::uint64_t own, std::uint64_t all, c10::Device device) {
  if (all <= own) return {};
  const auto side = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const auto options = at::TensorOptions().dtype(type_of_rows(shape)).device(device);
  const auto x = at::ones({side(all), side(shape.inputs)}, options), g = at::ones({side(all), side(shape.outputs)}, options);
  const auto seconds_of = [&](std::uint64_t rows) {
    const auto begin = steady_now();
    g.narrow(0, 0, side(rows)).t().mm(x.narrow(0, 0, side(rows)))[0][0].item<float>();  // its value: a device is then done
    return Seconds(steady_now() - begin).count();
  };
  seconds_of(all), seconds_of(own);                                     // the first load a library, and pages
  double products = 0, of_all = 0, of_own = 0;
  do {  // as long as members that share cores need to meet
    of_all += seconds_of(all);
    of_own += seconds_of(own);
    ++products;
  } while (of_all + of_own < 0.05);
  constexpr double kLeast = 0.05;  // of the product of all: less is lost in what else the cores do
  const auto operations = [&](std::uint64_t rows) { return products * 2.0 * static_cast<double>(rows * shape.inputs * shape.outputs); };
  return {operations(all - own) / std::max(of_all - of_own, kLeast * of_all), operations(own) / of_own};
}

}  // namespace shoal::nn
