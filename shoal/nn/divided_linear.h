// A fully connected layer of which every member of a group computes a strip of the outputs, for the rows of the whole group: y = x Wᵀ + b over
// the last dimension of x. The bias stays with the rows: whose samples they are adds all of it, and its gradient is an ordinary one.
//
// Threads: the listener is called on the caller's thread, and on the one that runs backward, which for CPU tensors is the same.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <cstdint>
#include <optional>

#include "shoal/nn/layer_group.h"

namespace shoal::nn {

class StripListener {
 public:
  virtual ~StripListener() = default;
  struct Forward {
    at::Tensor x, strip, y;  // everybody's rows; the own strip of the weight; all outputs of the own rows
    RowCounts rows;
  };
  // The layer that parameter i is the weight of. x: own rows x inputs.
  virtual Forward forward_in_strips(std::size_t i, const at::Tensor& x) = 0;
  // `pass` is that of the forward pass, without y; g: own rows x outputs. The input's gradient, undefined where `input` does not ask for it;
  // with `weight` the strip's is kept.
  virtual at::Tensor backward_in_strips(std::size_t i, const Forward& pass, const at::Tensor& g, bool input, bool weight) = 0;
};

// What graphs hold of a listener: they may outlive it in the user's hands, and then have no others to compute with.
struct StripLink : torch::CustomClassHolder {
  StripListener* listener = nullptr;
};

at::Tensor divided_linear(const c10::intrusive_ptr<StripLink>& link, std::size_t i, const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<at::Tensor>& bias);

}  // namespace shoal::nn
