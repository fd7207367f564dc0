#include "shoal/nn/factored_linear.h"

#include <ATen/Functions.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace shoal::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Named {
  PairListener* listener = nullptr;
  std::size_t i = 0;
};

class LayerRegistry {
 public:
  std::int64_t add(Named named) {
    const std::lock_guard lock(mutex_);
    named_.emplace(++last_, named);
    return last_;
  }
  void remove(std::int64_t name) {
    const std::lock_guard lock(mutex_);
    named_.erase(name);
  }
  Named find(std::int64_t name) {
    const std::lock_guard lock(mutex_);
    const auto found = named_.find(name);
    return found == named_.end() ? Named() : found->second;
  }

 private:
  std::mutex mutex_;  // guards the rest
  std::unordered_map<std::int64_t, Named> named_;
  std::int64_t last_ = 0;
};

LayerRegistry& registry() {
  static LayerRegistry all;
  return all;
}

// lent: the memory of x and g may soon be used for something else.
bool take(const at::Tensor& g, const at::Tensor& x, const at::Tensor& layer, bool goes_on, bool lent) {
  const auto [listener, i] = registry().find(layer.item<std::int64_t>());
  if (!listener || !listener->wants_pair(i, x, g, goes_on)) return false;
  listener->take_pair(i, lent ? x.clone() : x, lent ? g.clone() : g);
  return true;
}

// What graphs hold in place of gᵀ x: zeros where the pair was taken, for a graph that was compiled adds something. `use` is another number in
// each place, lest a compiler that sees two equal calls make one of them.
at::Tensor layer_gradient(const at::Tensor& g, const at::Tensor& x, const at::Tensor& layer, std::int64_t) {
  return take(g, x, layer, true, true) ? at::zeros({g.size(1), x.size(1)}, g.options()) : g.t().mm(x);
}

at::Tensor layer_gradient_meta(const at::Tensor& g, const at::Tensor& x, const at::Tensor&, std::int64_t) {
  return at::empty_symint({g.sym_size(1), x.sym_size(1)}, g.options());
}

at::Tensor traced_gradient(const at::Tensor& g, const at::Tensor& x, const at::Tensor& layer) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("shoal::layer_gradient", "").typed<decltype(layer_gradient)>();
  static std::atomic<std::int64_t> uses{0};
  return op.call(g, x, layer, ++uses);
}

class FactoredLinear : public torch::autograd::Function<FactoredLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            const at::Tensor& layer) {
    const bool has_bias = bias.has_value() && bias->defined();
    const auto cast = weight.to(x.scalar_type());  // of autocast, whose history is ours: backward() casts back
    context->save_for_backward({x, weight, cast, layer});
    context->saved_data["has_bias"] = has_bias;
    context->saved_data["type"] = weight.scalar_type();
    return at::linear(x, cast, has_bias ? std::optional(bias->to(x.scalar_type())) : std::nullopt);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list of(4);
    if (!gradients[0].defined()) return of;
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &cast = saved[2], &layer = saved[3];
    const bool of_gradients = at::GradMode::is_enabled();  // wanted, too: what the cast was made from belongs to it, and so does the product
    const auto weight = of_gradients ? saved[1].to(x.scalar_type()) : cast;
    const auto type = context->saved_data["type"].toScalarType();
    if (context->needs_input_grad(0)) of[0] = gradients[0].matmul(weight);
    const auto g = gradients[0].reshape_symint({-1, weight.sym_size(0)});
    if (context->needs_input_grad(1)) {
      const auto rows = x.reshape_symint({-1, weight.sym_size(1)});
      if (of_gradients) {
        of[1] = g.t().mm(rows).to(type);
      } else if (at::isTensorSubclassLike(g)) {  // somebody traces
        of[1] = traced_gradient(g, rows, layer).to(type);
      } else if (!take(g, rows, layer, context->needs_input_grad(0), false)) {
        of[1] = g.t().mm(rows).to(type);
      }
    }
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) of[2] = g.sum(0).to(type);
    return of;
  }
};

}  // namespace

TORCH_LIBRARY(shoal, library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def("factored_linear(Tensor x, Tensor weight, Tensor? bias, Tensor layer) -> Tensor", tags);
  library.impl("factored_linear", c10::DispatchKey::CompositeImplicitAutograd, &factored_linear);
  library.def("layer_gradient(Tensor g, Tensor x, Tensor layer, int use) -> Tensor", tags);
  library.impl("layer_gradient", c10::DispatchKey::CompositeExplicitAutograd, &layer_gradient);
  library.impl("layer_gradient", c10::DispatchKey::Meta, &layer_gradient_meta);
}

PairNames::PairNames(PairListener& listener, std::size_t parameters) {
  for (std::size_t i = 0; i < parameters; ++i) names_.push_back(at::scalar_tensor(registry().add({&listener, i}), at::kLong));
}

PairNames::~PairNames() {
  for (const auto& name : names_) registry().remove(name.item<std::int64_t>());
}

at::Tensor factored_linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, const at::Tensor& layer) {
  const auto device = weight.device().type();
  if (at::autocast::is_autocast_enabled(device)) {
    const auto type = at::autocast::get_autocast_dtype(device);
    const c10::impl::ExcludeDispatchKeyGuard casts_are_here(at::autocast::get_autocast_dispatch_key_from_device_type(device));
    const auto cast = at::autocast::cached_cast(type, x, device);
    if (cast.scalar_type() == type) return FactoredLinear::apply(cast, weight, bias, layer);
  } else if (x.scalar_type() == weight.scalar_type()) {
    return FactoredLinear::apply(x, weight, bias, layer);
  }
  return at::linear(x, weight, bias);
}

}  // namespace shoal::nn
