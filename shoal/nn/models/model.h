// A model as data: the one definition from which Python builds a torch.nn.Module (python/shoal/models.py), a libtorch program a
// torch::nn::Module (shoal/nn/described.h), and `shoal plan` a prediction. Immutable values.
#pragma once

#include "shoal/nn/models/operation.h"

namespace shoal::nn::models {

// One tensor that a sample consists of.
struct Input {
  std::string name;
  Shape shape;  // of one sample; of a text {places}, a typical number of them
  std::int64_t words = 0;  // a text: its tokens are 0 to words - 1; 0: real numbers
};

struct Layer {
  std::string name;  // path of its module: "layer1.0.conv1"
  Operation operation;
  std::vector<std::size_t> inputs;  // values: the model's inputs in order, then what each layer computes
  Fitted fitted;
};

// How parameters begin.
enum class Initial {
  layers,  // as each layer of torch.nn does by itself
  he,  // convolutions: normal, variance 2 / fan-out (He et al., ICCV 2015, eq. 14); linear layers: normal, 0.01; biases 0
  small,  // linear layers and embeddings: normal, 0.02; biases 0 (Radford et al. 2018, 4.1)
};

struct Model {
  std::string name;  // "resnet-50"
  std::string source;  // the paper, and where we differ from it
  std::vector<Input> inputs;
  std::vector<Layer> layers;  // in the order of the forward pass; the last one's value is the model's
  std::vector<double> auxiliary = {};  // weights in the loss of the Heads' inputs behind the first
  Initial initial = Initial::layers;

  std::uint64_t parameters() const;  // elements of all of them
  double flops() const;  // of one sample's forward pass, counted as in Fitted
};

// The zoo. Names in the order in which they are shown.
const std::vector<std::string>& names();
// Throws Error{invalid_argument} that lists the names if `name` is none of them.
Model describe(const std::string& name);

}  // namespace shoal::nn::models
