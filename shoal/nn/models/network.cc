#include "shoal/nn/models/network.h"

#include <cassert>

namespace shoal::nn::models {

Network::Network(std::string name, std::string source, Initial initial)
    : model_{std::move(name), std::move(source), {}, {}, {}, initial} {}

Network::Value Network::input(std::string name, Shape shape, std::int64_t words) {
  assert(model_.layers.empty());
  model_.inputs.push_back({std::move(name), std::move(shape), words});
  return model_.inputs.size() - 1;
}

Network::Value Network::apply(std::string name, Operation operation, std::vector<Value> inputs) {
  std::vector<Shape> shapes;
  for (const Value value : inputs) shapes.push_back(shape(value));
  Fitted fitted = fit(operation, shapes);
  model_.layers.push_back({std::move(name), operation, std::move(inputs), std::move(fitted)});
  return model_.inputs.size() + model_.layers.size() - 1;
}

const Shape& Network::shape(Value value) const {
  const std::size_t inputs = model_.inputs.size();
  return value < inputs ? model_.inputs[value].shape : model_.layers.at(value - inputs).fitted.output;
}

Model Network::finish(std::vector<double> weights) && {
  model_.auxiliary = std::move(weights);
  return std::move(model_);
}

Chain& Chain::then(Operation operation) {
  value_ = network_.apply(prefix_ + std::to_string(next_++), operation, value_);
  return *this;
}

}  // namespace shoal::nn::models
