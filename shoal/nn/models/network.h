// Writes a Model down, layer by layer, as its paper draws it: each call names a layer and says what it reads.
#pragma once

#include "shoal/nn/models/model.h"

namespace shoal::nn::models {

class Network {
 public:
  using Value = std::size_t;  // what an input or a layer gives

  Network(std::string name, std::string source, Initial initial = Initial::layers);

  Value input(std::string name, Shape shape, std::int64_t words = 0);
  Value apply(std::string name, Operation operation, std::vector<Value> inputs);
  Value apply(std::string name, Operation operation, Value input) {
    return apply(std::move(name), operation, std::vector{input});
  }

  const Shape& shape(Value value) const;
  // weights: in the loss, of the auxiliary classifiers that its Heads end with.
  Model finish(std::vector<double> weights = {}) &&;

 private:
  Model model_;
};

// Layers of which each reads the one before, named PREFIX0, PREFIX1 and so on, as in a torch.nn.Sequential.
class Chain {
 public:
  Chain(Network& network, std::string prefix, Network::Value input)
      : network_(network), prefix_(std::move(prefix)), value_(input) {}

  Chain& then(Operation operation);
  Chain& relu() { return then(Activation{Function::relu}); }
  Network::Value value() const { return value_; }  // of the last layer

 private:
  Network& network_;  // outlives this
  std::string prefix_;
  Network::Value value_;
  int next_ = 0;
};

}  // namespace shoal::nn::models
