// A model of the zoo (shoal/nn/models/model.h) as a module of libtorch. Its parameters and buffers have the names, the order and, after
// the same torch::manual_seed, the values of the module that Python builds. Threads: as any torch::nn::Module.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "shoal/nn/models/model.h"

namespace shoal::nn {

class Described : public torch::nn::Module {
 public:
  explicit Described(models::Model model);

  // inputs: those of model(), each with the batch in front. Returns the model's value; in training behind it that of each auxiliary
  // classifier. Throws Error{invalid_argument} for another number of inputs.
  std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& inputs);

  const models::Model& model() const { return model_; }

 private:
  struct Value {  // what a layer gives
    torch::Tensor output;
    std::tuple<torch::Tensor, torch::Tensor> state = {};  // of an Lstm: its last (hidden, cell)
  };
  using Read = std::vector<Value>;
  using Step = std::function<Value(const Read& inputs)>;
  class Build;  // turns an operation into a Step

  const models::Model model_;
  std::vector<Step> steps_;  // a layer each
  std::vector<std::size_t> last_used_;  // by value: the layer behind which nobody reads it
};

}  // namespace shoal::nn
