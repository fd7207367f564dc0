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
  // One call of the layer that parameter i is the weight of.
  struct Call {
    std::uint64_t number = 0;  // grows with each
    std::size_t i = 0;
    RowCounts rows;            // of everybody in the group
    at::Tensor x, strip;       // everybody's rows; the own strip of the weight
    bool input = false;        // has a gradient
  };
  // x: own rows x inputs. Fills in the call, of which i, rows and input are there; returns all outputs of the own rows.
  virtual at::Tensor forward_in_strips(Call& call, const at::Tensor& x) = 0;
  // g: own rows x outputs. The input's gradient, undefined where it has none; with `weight` the strip's is kept.
  virtual at::Tensor backward_in_strips(const Call& call, const at::Tensor& g, bool weight) = 0;
};

// What graphs hold of a listener: they may outlive it in the user's hands, and then have no others to compute with.
struct StripLink : torch::CustomClassHolder {
  StripListener* listener = nullptr;
};

// rows: of everybody in the group that computes it now.
at::Tensor divided_linear(const c10::intrusive_ptr<StripLink>& link, std::size_t i, const at::Tensor& x, const at::Tensor& weight,
                          const std::optional<at::Tensor>& bias, const RowCounts& rows);

}  // namespace shoal::nn
