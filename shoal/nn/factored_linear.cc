#include "shoal/nn/factored_linear.h"

#include <ATen/Functions.h>
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
    context->save_for_backward({x, weight});
    context->saved_data["i"] = i;
    context->saved_data["has_bias"] = bias.has_value() && bias->defined();
    context->saved_data["link"] = c10::IValue::make_capsule(link);
    return at::linear(x, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list of(5);
    if (!gradients[0].defined()) return of;
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    if (context->needs_input_grad(0)) of[0] = gradients[0].matmul(weight);
    const auto g = gradients[0].reshape({-1, weight.size(0)});
    if (context->needs_input_grad(1)) {
      const auto rows = x.reshape({-1, weight.size(1)});
      const auto i = static_cast<std::size_t>(context->saved_data["i"].toInt());
      PairListener* const listener = c10::static_intrusive_pointer_cast<PairLink>(context->saved_data["link"].toCapsule())->listener;
      // A gradient of the gradient needs the product.
      if (listener && !at::GradMode::is_enabled() && listener->wants_pair(i, rows, g)) {
        listener->take_pair(i, rows, g);
      } else {
        of[1] = g.t().mm(rows);
      }
    }
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) of[2] = g.sum(0);
    return of;
  }
};

}  // namespace

at::Tensor factored_linear(const c10::intrusive_ptr<PairLink>& link, std::size_t i, const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias) {
  return FactoredLinear::apply(x, weight, bias, static_cast<std::int64_t>(i), link);
}

}  // namespace shoal::nn
