#include "shoal/nn/factored_linear.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace shoal::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class FactoredLinear : public torch::autograd::Function<FactoredLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            std::int64_t i, const c10::intrusive_ptr<PairLink>& link) {
    const bool has_bias = bias.has_value() && bias->defined();
    const auto cast = weight.to(x.scalar_type());  // of autocast, whose history is ours: backward() casts back
    context->save_for_backward({x, weight, cast});
    context->saved_data["i"] = i;
    context->saved_data["has_bias"] = has_bias;
    context->saved_data["link"] = c10::IValue::make_capsule(link);
    context->saved_data["type"] = weight.scalar_type();
    return at::linear(x, cast, has_bias ? std::optional(bias->to(x.scalar_type())) : std::nullopt);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list of(5);
    if (!gradients[0].defined()) return of;
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &cast = saved[2];
    const bool of_gradients = at::GradMode::is_enabled();  // wanted, too: what the cast was made from belongs to it
    const auto weight = of_gradients ? saved[1].to(x.scalar_type()) : cast;
    if (context->needs_input_grad(0)) of[0] = gradients[0].matmul(weight);
    const auto type = context->saved_data["type"].toScalarType();
    const auto g = gradients[0].reshape({-1, weight.size(0)});
    if (context->needs_input_grad(1)) {
      const auto rows = x.reshape({-1, weight.size(1)});
      const auto i = static_cast<std::size_t>(context->saved_data["i"].toInt());
      PairListener* const listener = c10::static_intrusive_pointer_cast<PairLink>(context->saved_data["link"].toCapsule())->listener;
      if (listener && !of_gradients && listener->wants_pair(i, rows, g)) {
        listener->take_pair(i, rows, g);
      } else {
        of[1] = g.t().mm(rows).to(type);
      }
    }
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) of[2] = g.sum(0).to(type);
    return of;
  }
};

}  // namespace

at::Tensor factored_linear(const c10::intrusive_ptr<PairLink>& link, std::size_t i, const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias) {
  const auto device = weight.device().type();
  if (at::autocast::is_autocast_enabled(device)) {
    const auto type = at::autocast::get_autocast_dtype(device);
    const c10::impl::ExcludeDispatchKeyGuard casts_are_here(at::autocast::get_autocast_dispatch_key_from_device_type(device));
    const auto cast = at::autocast::cached_cast(type, x, device);
    if (cast.scalar_type() == type) return FactoredLinear::apply(cast, weight, bias, static_cast<std::int64_t>(i), link);
  } else if (x.scalar_type() == weight.scalar_type()) {
    return FactoredLinear::apply(x, weight, bias, static_cast<std::int64_t>(i), link);
  }
  return at::linear(x, weight, bias);
}

}  // namespace shoal::nn
