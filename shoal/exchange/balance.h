// Balance equations: for each layer whether its members should share the samples, the layer, or both (Das et al., "Distributed deep learning
// using synchronous stochastic gradient descent", arXiv 1602.06709, sections 3 and 4; research/sync.md 4.1). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/exchange/model.h"

namespace shoal::exchange {

// Bytes of one member and iteration, with `batch` samples of all members together:
//   data parallel      4 W (2 - overlap)                               gradients up, weights down
//   model parallel     2 x 4 A batch                                   activations forward, errors backward
//   hybrid, G groups   2 x 4 A batch / G + 4 W (2 - overlap) G / N     model parallel inside a group of N / G members
// W: parameters of the layer, A: elements of its input of one sample. `overlap` in [0, 1]: how much sending and receiving overlap.
struct LayerBalance {
  std::string layer;
  LayerKind kind = LayerKind::other;
  double flops_a_byte = 0;     // data parallel: operations of an iteration on one member to bytes that it moves
  double data = 0, model = 0;  // bytes
  std::uint32_t groups = 1;    // the best divisor G of N: N is data parallel, 1 model parallel
  double hybrid = 0;           // bytes with that many
  double activations = 0;      // of them, those of activations and errors
  double best_groups = 0;      // G* = sqrt(2 N A batch / (W (2 - overlap))), where any number would do
  std::uint32_t members = 1;   // N
  const char* share() const;   // "data", "model" or "hybrid"
};

// Layers with parameters that are fully connected or convolutional, in forward order.
std::vector<LayerBalance> balance(const Model& model, std::uint32_t members, double batch, double overlap);

// Operations per byte that a machine has to offer: a layer hides its traffic if it has more of them.
inline double system_balance(const Machine& machine) { return machine.flops / machine.link.rate; }

// Seconds of an iteration in which each layer is shared as its row says. Weights travel in order of priority, as their section 3.3 has it;
// activations and errors hold up the layer that they belong to, whose neighbours need them. Among G groups the weights that a member holds are
// all-reduced, 2 (G - 1) / G of them on a link that sends and receives at once.
double seconds_balanced(const Model& model, const Machine& machine, std::uint32_t members, double batch, double overlap);

}  // namespace shoal::exchange
