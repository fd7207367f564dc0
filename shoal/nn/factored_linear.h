// A fully connected layer whose backward pass can hand over the pair (x, g) of its weight's gradient in place of the product (factor/factor.h):
// y = x Wᵀ + b, over the last dimension of x. What it computes otherwise is PyTorch's own, bit for bit. Under autocast x, W and b are cast as
// PyTorch casts them; the pair is of that type, and gradients of W and b are cast back.
//
// Threads: the listener is called on the thread that runs backward; for CPU tensors that is the caller of backward().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <cstdint>
#include <optional>

namespace shoal::nn {

class PairListener {
 public:
  virtual ~PairListener() = default;
  // A pass has these rows for the weight of parameter i, rows x M and rows x N. Does it take them in place of their product?
  virtual bool wants_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g) = 0;
  virtual void take_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g) = 0;
};

// What graphs hold of a listener: they may outlive it in the user's hands, and then leave plain gradients.
struct PairLink : torch::CustomClassHolder {
  PairListener* listener = nullptr;
};

at::Tensor factored_linear(const c10::intrusive_ptr<PairLink>& link, std::size_t i, const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias);

}  // namespace shoal::nn
