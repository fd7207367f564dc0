#include "shoal/nn/divided_linear.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

namespace shoal::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class DividedLinear : public torch::autograd::Function<DividedLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            std::int64_t i, const RowCounts& rows, const c10::intrusive_ptr<StripLink>& link) {
    StripListener::Call call{0, static_cast<std::size_t>(i), rows, {}, {}, x.requires_grad()};
    auto y = listener(link).forward_in_strips(call, x.reshape({-1, weight.size(1)}).contiguous());
    context->save_for_backward({call.x, call.strip});
    context->saved_data["call"] = static_cast<std::int64_t>(call.number);
    context->saved_data["input"] = call.input;
    context->saved_data["rows"] = call.rows;
    context->saved_data["i"] = i;
    context->saved_data["link"] = c10::IValue::make_capsule(link);
    context->saved_data["has_bias"] = bias.has_value() && bias->defined();
    if (bias.has_value() && bias->defined()) y.add_(*bias);
    auto shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return at::_unsafe_view(y, shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list of(6);
    const auto saved = context->get_saved_variables();
    const auto link = c10::static_intrusive_pointer_cast<StripLink>(context->saved_data["link"].toCapsule());
    const auto shape = gradients[0].sizes().vec();
    const auto g = gradients[0].reshape({-1, shape.back()});
    const StripListener::Call call{static_cast<std::uint64_t>(context->saved_data["call"].toInt()),
                                   static_cast<std::size_t>(context->saved_data["i"].toInt()),
                                   context->saved_data["rows"].toIntVector(),
                                   saved[0],
                                   saved[1],
                                   context->saved_data["input"].toBool()};
    auto dx = listener(link).backward_in_strips(call, g, context->needs_input_grad(1));
    if (dx.defined()) {
      auto of_input = shape;
      of_input.back() = call.x.size(1);
      of[0] = dx.view(of_input);
    }
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) of[2] = g.sum(0);
    return of;
  }

 private:
  static StripListener& listener(const c10::intrusive_ptr<StripLink>& link) {
    if (link->listener) return *link->listener;
    throw Error(Code::cancelled, "the layer was divided among members that are not exchanging any more", "backward()");
  }
};

}  // namespace

at::Tensor divided_linear(const c10::intrusive_ptr<StripLink>& link, std::size_t i, const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<at::Tensor>& bias, const RowCounts& rows) {
  return DividedLinear::apply(x, weight, bias, static_cast<std::int64_t>(i), rows, link);
}

}  // namespace shoal::nn
