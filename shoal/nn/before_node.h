// Runs something before a node of autograd's graph runs, on the thread that runs it.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>
#include <utility>

namespace shoal::nn {

template <class Fn>
void before_node(torch::autograd::Node& node, Fn fn) {
  class Before final : public torch::autograd::FunctionPreHook {
   public:
    explicit Before(Fn fn) : fn_(std::move(fn)) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
      fn_();
      return gradients;
    }

   private:
    Fn fn_;
  };
  node.add_pre_hook(std::make_unique<Before>(std::move(fn)));
}

}  // namespace shoal::nn
