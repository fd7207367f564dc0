// Where autograd tells what it does: hooks on the gradient accumulators of parameters and on the outputs of a forward pass.
// What follows from it is decided by the listener (data_parallel.h).
//
// The accumulator's own hooks are used, not the tensors' lists: users register theirs there, and Python's and C++'s
// exclude each other on one tensor. A parameter's accumulator lives only while somebody holds it: we do.
//
// Threads: the listener is called on the thread that runs backward; for CPU tensors that is the caller of backward().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace shoal::nn {

class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void backward_starts() = 0;                 // may come several times in one pass
  virtual void before_accumulation(std::size_t i) = 0;  // a gradient is about to be added to parameter i's .grad
  virtual void after_accumulation(std::size_t i) = 0;
};

class GradientHooks {
 public:
  // Each parameter is a leaf that requires a gradient. The listener outlives the hooks.
  GradientHooks(GradientListener& listener, const std::vector<at::Tensor>& parameters);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  void watch(const at::Tensor& output);  // backward_starts() when a backward pass reaches it
  // Inside a backward pass that stores gradients of these parameters, not only of inputs (torch.autograd.grad).
  bool pass_stores_gradients() const;

 private:
  struct Link;  // what hooks hold: they may outlive us in a graph that the user keeps
  std::shared_ptr<Link> link_;
  struct Accumulator {
    decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>())) node;  // shared in one way or another, by version
    std::uintptr_t post_hook = 0;
  };
  std::vector<Accumulator> accumulators_;
};

}  // namespace shoal::nn
