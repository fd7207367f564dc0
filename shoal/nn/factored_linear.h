// A fully connected layer whose backward pass can hand over the pair (x, g) of its weight's gradient in place of the product (factor/factor.h):
// y = x Wᵀ + b, over the last dimension of x. What it computes otherwise is PyTorch's own, bit for bit. Under autocast x, W and b are cast as
// PyTorch casts them; the pair is of that type, and gradients of W and b are cast back.
//
// It is PyTorch's operator shoal::factored_linear, which compilers trace: the graph of the forward pass holds an ordinary layer, that of the
// backward pass shoal::layer_gradient, behind which is decided, whenever it runs, whether pair or product leaves.
//
// Threads: the listener is called on the thread that runs backward; for CPU tensors that is the caller of backward().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::nn {

class PairListener {
 public:
  virtual ~PairListener() = default;
  // A pass has these rows for the weight of parameter i, rows x M and rows x N. Does it take them in place of their product? goes_on: the gradient of x is
  // wanted, too, for all that is known.
  virtual bool wants_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g, bool goes_on) = 0;
  virtual void take_pair(std::size_t i, const at::Tensor& x, const at::Tensor& g) = 0;
};

// How graphs name the parameters of a listener. They may outlive it in the user's hands, and then leave plain gradients.
class PairNames {
 public:
  PairNames(PairListener& listener, std::size_t parameters);
  ~PairNames();
  PairNames(const PairNames&) = delete;

  // A number in a tensor: graphs that were compiled once serve many layers.
  const at::Tensor& name(std::size_t i) const { return names_[i]; }

 private:
  std::vector<at::Tensor> names_;
};

// layer: a name.
at::Tensor factored_linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, const at::Tensor& layer);

}  // namespace shoal::nn
