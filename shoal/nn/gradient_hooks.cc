#include "shoal/nn/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

#include "shoal/nn/before_node.h"

namespace shoal::nn {

using torch::autograd::variable_list;

struct GradientHooks::Link {
  GradientListener* listener = nullptr;  // nullptr once the hooks are gone
};

namespace {

template <class Fn>
class After final : public torch::autograd::FunctionPostHook {
 public:
  explicit After(Fn fn) : fn_(std::move(fn)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    fn_();
    return outputs;
  }

 private:
  Fn fn_;
};

}  // namespace

GradientHooks::GradientHooks(GradientListener& listener, const std::vector<at::Tensor>& parameters)
    : link_(std::make_shared<Link>(Link{&listener})) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Accumulator accumulator{torch::autograd::impl::grad_accumulator(parameters[i])};
    const auto before = [link = link_, i] {
      if (link->listener) link->listener->before_accumulation(i);
    };
    const auto after = [link = link_, i] {
      if (link->listener) link->listener->after_accumulation(i);
    };
    before_node(*accumulator.node, before);
    accumulator.post_hook = accumulator.node->add_post_hook(std::make_unique<After<decltype(after)>>(after));
    accumulators_.push_back(std::move(accumulator));
  }
}

GradientHooks::~GradientHooks() {
  link_->listener = nullptr;
  for (auto& accumulator : accumulators_) accumulator.node->del_post_hook(accumulator.post_hook);
}

void GradientHooks::watch(const at::Tensor& output) {
  const auto& node = output.grad_fn();
  if (!node) return;
  const auto starts = [link = link_] {
    if (link->listener) link->listener->backward_starts();
  };
  before_node(*node, starts);
}

bool GradientHooks::pass_stores_gradients() const {
  const auto* wanted = torch::autograd::get_current_graph_task_exec_info();
  if (wanted == nullptr || wanted->empty()) return true;  // backward() without `inputs`
  for (const auto& accumulator : accumulators_) {
    const auto found = wanted->find(accumulator.node.get());
    if (found != wanted->end() && found->second.needed_) return true;
  }
  return false;
}

}  // namespace shoal::nn
