// What one layer of a model computes, as data. Names and meaning are those of torch.nn where it has the layer; sizes are
// counted without the batch. A field `in` is filled in from the layer's input by Network (network.h). Immutable values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace shoal::nn::models {

using Shape = std::vector<std::int64_t>;     // of one sample: {channels, height, width}, {places, width} or {width}
using Extent = std::array<std::int64_t, 2>;  // height, width

struct Convolution {
  std::int64_t out;
  Extent kernel, stride{1, 1}, padding{0, 0};
  std::int64_t groups = 1;
  bool bias = true;
  std::int64_t in = 0;
};
struct Linear {  // of the last dimension
  std::int64_t out;
  bool bias = true;
  std::int64_t in = 0;
};
struct BatchNorm {
  double epsilon = 1e-5;
  std::int64_t in = 0;
};
struct LayerNorm {  // over the last dimension
  std::int64_t in = 0;
};
struct ResponseNorm {  // over `size` neighbouring channels: x / (k + alpha/size * sum x^2)^beta (Krizhevsky et al. 2012, 3.3)
  std::int64_t size;
  double alpha, beta, k;
};
struct Embedding {  // token 0 pads where `padded`: its vector stays zero
  std::int64_t words, width;
  bool padded = false;
};
struct Position {  // adds a learned vector to each place
  std::int64_t places;
  std::int64_t in = 0;
};
struct Lstm {  // over the places of its first input; a second input is the Lstm whose last state it starts from
  std::int64_t width, layers;
  std::int64_t in = 0;
};
enum class Function { relu, tanh, sigmoid, gelu };
struct Activation {
  Function function;
};
struct Pool {
  enum class Kind { max, average } kind;
  Extent kernel, stride, padding{0, 0};
  bool ceil = false;  // windows that reach over the edge count
};
struct GlobalAverage {};  // {channels, height, width} -> {channels, 1, 1}
struct Flatten {};
struct Dropout {
  double p;
};
struct Add {};
struct Concatenate {  // images along their channels, everything else along the last dimension
  std::int64_t dimension = 0;  // as torch counts, with the batch
};
struct Shortcut {  // every stride-th pixel, with zeros for the channels that are missing (He et al. 2016, 3.3, option A)
  std::int64_t stride, out;
  std::int64_t in = 0;
};
struct SelfAttention {  // {places, 3 width}, query, key and value side by side -> {places, width} (Vaswani et al. 2017, 3.2)
  std::int64_t heads;
  bool causal;
};
// Inputs: queries {n, width}, keys {m, width}, values {m, depth}, the m tokens they come from, of which 0 is left out.
// sum over m of softmax(v . tanh(query + key)) value (Bahdanau et al. 2015, A.1.2)
struct AdditiveAttention {
  std::int64_t in = 0;
};
// An Lstm whose input at each place is followed by what came out at the place before (Luong et al. 2015, 3.3, input feeding), zeros at the first.
// Inputs: what it reads {n, in}, the Lstm whose last state it starts from and whose outputs {m, width} attention finds, their keys {m, width}, the m
// tokens they come from. Of each place: state = lstm([read; out before]); out = tanh(combine [state; attention of query(state)]).
struct FedDecoder {
  std::int64_t width, layers;
  std::int64_t in = 0;
};
struct Heads {};  // in training all its inputs, else the first: a model with auxiliary classifiers ends in it

using Operation =
    std::variant<Convolution, Linear, BatchNorm, LayerNorm, ResponseNorm, Embedding, Position, Lstm, Activation, Pool,
                 GlobalAverage, Flatten, Dropout, Add, Concatenate, Shortcut, SelfAttention, AdditiveAttention,
                 FedDecoder, Heads>;

struct Parameter {
  std::string name;  // within its layer: "weight"
  Shape shape;
};

// What a layer is once its inputs are known.
struct Fitted {
  Shape output;
  std::vector<Parameter> parameters = {};
  double flops =
      0;  // of one sample's forward pass: 2 for each multiply-add of a product; what is done once an element is left out
};
// Fills in the `in` of `operation`. The inputs fit it: what does not is a fault of the model's definition.
Fitted fit(Operation& operation, const std::vector<Shape>& inputs);

}  // namespace shoal::nn::models
