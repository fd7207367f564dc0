// A model as data: what a plan needs of it, without running anything. `shoal plan` reads it from a file, or has it traced (python/shoal/describe.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/collective/select.h"
#include "shoal/exchange/planner.h"

namespace shoal::exchange {

enum class LayerKind : std::uint8_t { fc, conv, embedding, other };
const char* name(LayerKind kind);

// Counts are of one sample (an image, a sentence).
struct Layer {
  struct Parameter {
    std::string name;
    std::uint64_t count = 0;
    DType type = DType::f32;
  };
  std::string name;
  LayerKind kind = LayerKind::other;
  std::vector<Parameter> parameters;  // the weight of a fully connected layer or embedding first; none: the layer only computes
  double forward_flops = 0;           // floating-point operations; a multiplication and an addition are two
  std::uint64_t inputs = 0;           // elements of its activations, in
  std::uint64_t outputs = 0;          // and out
  std::uint64_t rows = 1;             // of a fully connected layer: rows of its product; of an embedding: looked up (tokens, positions); >= 1

  std::uint64_t count() const;        // of all its parameters
};

struct Model {
  std::string name;
  std::vector<Layer> layers;          // in forward order; shared parameters stand where they are used first

  std::uint64_t parameters() const;
  std::uint64_t bytes() const;
  double forward_flops() const;
};

Model model_from_json(const std::string& text, const std::string& where);  // Error{invalid_argument} naming file and key
std::string to_json(const Model& model);

// What one member of a run has. All members alike.
struct Machine {
  double flops = 0;                   // floating-point operations/s in training, of one member (those that share cores: of its part)
  collective::LinkModel link;
};

// A model as a run of `samples` a member would measure it: backward takes twice the time of forward, one part for the gradients of the
// weights, one for those of the activations (Das et al., arXiv 1602.06709, 2.1), and a gradient is there when its layer is done.
struct Measured {
  std::vector<TensorSpec> tensors;
  Compute compute;
};
Measured as_measured(const Model& model, double samples, double flops);

}  // namespace shoal::exchange
