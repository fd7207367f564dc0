#include "shoal/nn/described.h"

#include <torch/nn/functional.h>
#include <torch/nn/init.h>
#include <torch/nn/modules.h>

#include "shoal/core/error.h"

namespace shoal::nn {

namespace F = torch::nn::functional;
using torch::Tensor;
using namespace models;

namespace {

template <std::size_t n>
torch::ExpandingArray<n> sides(const std::array<std::int64_t, n>& extent) {
  return torch::ExpandingArray<n>(extent);
}

// A layer that is nothing but one parameter.
struct Weight : torch::nn::Module {
  explicit Weight(Tensor first) : weight(register_parameter("weight", std::move(first))) {}
  Tensor weight;
};

Tensor self_attention(const Tensor& qkv, const SelfAttention& a) {
  const auto part = [&](const Tensor& x) { return x.unflatten(-1, {a.heads, -1}).transpose(1, 2); };
  const auto parts = qkv.chunk(3, -1);
  return at::scaled_dot_product_attention(part(parts[0]), part(parts[1]), part(parts[2]), {}, 0.0, a.causal)
      .transpose(1, 2)
      .flatten(2);
}

Tensor additive_attention(const Tensor& weight, const Tensor& queries, const Tensor& keys, const Tensor& values,
                          const Tensor& tokens) {
  auto scores = at::matmul(at::tanh(queries.unsqueeze(2) + keys.unsqueeze(1)), weight);
  scores = scores.masked_fill((tokens == 0).unsqueeze(1), -1e9);
  return at::matmul(scores.softmax(-1), values);
}

Tensor additive_weight(std::int64_t width) {
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  return torch::empty({width}).uniform_(-bound, bound);
}

using State = std::tuple<Tensor, Tensor>;

struct FedDecoderModule : torch::nn::Module {
  explicit FedDecoderModule(const FedDecoder& d)
      : lstm(register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(d.in + d.width, d.width).num_layers(d.layers).batch_first(true)))),
        query(register_module("query", torch::nn::Linear(torch::nn::LinearOptions(d.width, d.width).bias(false)))),
        attention(register_module("attention", std::make_shared<Weight>(additive_weight(d.width)))),
        combine(register_module("combine", torch::nn::Linear(2 * d.width, d.width))) {}

  Tensor forward(const Tensor& read, const Tensor& found, const Tensor& keys, const Tensor& tokens, State state) {
    Tensor out = at::zeros_like(found.slice(1, 0, 1)), decoded;
    std::vector<Tensor> all;
    for (const Tensor& place : read.split(1, 1)) {
      std::tie(decoded, state) = lstm->forward(at::cat({place, out}, -1), state);
      const Tensor context = additive_attention(attention->weight, at::linear(decoded, query->weight), keys, found, tokens);
      out = at::tanh(at::linear(at::cat({decoded, context}, -1), combine->weight, combine->bias));
      all.push_back(out);
    }
    return at::cat(all, 1);
  }

  torch::nn::LSTM lstm;
  torch::nn::Linear query;
  std::shared_ptr<Weight> attention;
  torch::nn::Linear combine;
};

Tensor shortcut(const Tensor& x, const Shortcut& s) {
  using namespace torch::indexing;
  return at::constant_pad_nd(x.index({Slice(), Slice(), Slice(None, None, s.stride), Slice(None, None, s.stride)}),
                             {0, 0, 0, 0, 0, s.out - s.in});
}

Tensor activation(const Tensor& x, Function function) {
  switch (function) {
    case Function::relu: return x.relu();
    case Function::tanh: return x.tanh();
    case Function::sigmoid: return x.sigmoid();
    case Function::gelu: return at::gelu(x);
  }
  return x;
}

Tensor pooled(const Tensor& x, const Pool& p) {
  if (p.kind == Pool::Kind::max) return at::max_pool2d(x, p.kernel, p.stride, p.padding, 1, p.ceil);
  return at::avg_pool2d(x, p.kernel, p.stride, p.padding, p.ceil);
}

void initialise(Initial initial, const models::Operation& operation, torch::nn::Module& layer) {
  if (initial == Initial::layers) return;
  const torch::NoGradGuard no_grad;
  const bool convolution = std::holds_alternative<Convolution>(operation), linear = std::holds_alternative<Linear>(operation);
  const bool embedding = std::holds_alternative<Embedding>(operation);
  const auto parameters = layer.named_parameters();
  if (initial == Initial::he && convolution)
    torch::nn::init::kaiming_normal_(parameters["weight"], 0, torch::kFanOut, torch::kReLU);
  if (initial == Initial::he && linear) parameters["weight"].normal_(0, 0.01);
  if (initial == Initial::small && (linear || embedding)) parameters["weight"].normal_(0, 0.02);
  if ((convolution || linear) && parameters.contains("bias")) parameters["bias"].zero_();
}

}  // namespace

class Described::Build {
 public:
  Build(Described& module, const Layer& layer) : module_(module), layer_(layer) {}

  Step operator()(const Convolution& c) {
    torch::nn::Conv2dOptions options(c.in, c.out, sides(c.kernel));
    return single(torch::nn::Conv2d(options.stride(sides(c.stride)).padding(sides(c.padding)).groups(c.groups).bias(c.bias)));
  }
  Step operator()(const Linear& l) {
    const auto leaf = registered(torch::nn::Linear(torch::nn::LinearOptions(l.in, l.out).bias(l.bias)).ptr());
    // Not its forward(), which for texts adds the bias apart and so rounds otherwise than Python's.
    return function([leaf](const Read& in) { return at::linear(in[0].output, leaf->weight, leaf->bias); });
  }
  Step operator()(const BatchNorm& b) {
    return single(torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(b.in).eps(b.epsilon)));
  }
  Step operator()(const LayerNorm& l) { return single(torch::nn::LayerNorm(torch::nn::LayerNormOptions({l.in}))); }
  Step operator()(const ResponseNorm& r) {
    return single(torch::nn::LocalResponseNorm(torch::nn::LocalResponseNormOptions(r.size).alpha(r.alpha).beta(r.beta).k(r.k)));
  }
  Step operator()(const Embedding& e) {
    auto options = torch::nn::EmbeddingOptions(e.words, e.width);
    if (e.padded) options.padding_idx(0);
    return single(torch::nn::Embedding(options));
  }
  Step operator()(const Position& p) {
    const auto weight = registered(std::make_shared<Weight>(torch::empty({p.places, p.in}).normal_(0, 0.02)))->weight;
    return function([weight](const Read& in) { return in[0].output + weight.slice(0, 0, in[0].output.size(1)); });
  }
  Step operator()(const Lstm& l) {
    auto lstm = torch::nn::LSTM(torch::nn::LSTMOptions(l.in, l.width).num_layers(l.layers).batch_first(true));
    registered(lstm.ptr());
    return [lstm](const Read& in) mutable -> Value {
      auto [output, state] = in.size() > 1 ? lstm->forward(in[0].output, in[1].state) : lstm->forward(in[0].output);
      return {output, state};
    };
  }
  Step operator()(const Activation& a) {
    return function([a](const Read& in) { return activation(in[0].output, a.function); });
  }
  Step operator()(const Pool& p) {
    return function([p](const Read& in) { return pooled(in[0].output, p); });
  }
  Step operator()(const GlobalAverage&) {
    return function([](const Read& in) { return at::adaptive_avg_pool2d(in[0].output, {1, 1}); });
  }
  Step operator()(const Flatten&) {
    return function([](const Read& in) { return in[0].output.flatten(1); });
  }
  Step operator()(const Dropout& d) { return single(torch::nn::Dropout(d.p)); }
  Step operator()(const Add&) {
    return function([](const Read& in) { return in[0].output + in[1].output; });
  }
  Step operator()(const Concatenate& c) {
    return function([c](const Read& in) {
      std::vector<Tensor> parts;
      for (const Value& value : in) parts.push_back(value.output);
      return at::cat(parts, c.dimension);
    });
  }
  Step operator()(const Shortcut& s) {
    return function([s](const Read& in) { return shortcut(in[0].output, s); });
  }
  Step operator()(const SelfAttention& a) {
    return function([a](const Read& in) { return self_attention(in[0].output, a); });
  }
  Step operator()(const AdditiveAttention& a) {
    const auto weight = registered(std::make_shared<Weight>(additive_weight(a.in)))->weight;
    return function([weight](const Read& in) {
      return additive_attention(weight, in[0].output, in[1].output, in[2].output, in[3].output);
    });
  }
  Step operator()(const FedDecoder& d) {
    const auto decoder = registered(std::make_shared<FedDecoderModule>(d));
    return function([decoder](const Read& in) {
      return decoder->forward(in[0].output, in[1].output, in[2].output, in[3].output, in[1].state);
    });
  }
  Step operator()(const Heads&) {
    return function([](const Read& in) { return in[0].output; });  // forward() returns the others
  }

 private:
  // Puts `leaf` at the layer's path, with plain modules in between.
  template <class Leaf>
  std::shared_ptr<Leaf> registered(std::shared_ptr<Leaf> leaf) {
    torch::nn::Module* at = &module_;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = layer_.name.find('.', begin)) != std::string::npos; begin = dot + 1) {
      const std::string part = layer_.name.substr(begin, dot - begin);
      const auto children = at->named_children();
      at = children.contains(part) ? children[part].get()
                                   : at->register_module(part, std::make_shared<torch::nn::Module>(part)).get();
    }
    at->register_module(layer_.name.substr(begin), leaf);
    initialise(module_.model_.initial, layer_.operation, *leaf);
    return leaf;
  }
  template <class Holder>
  Step single(Holder leaf) {
    registered(leaf.ptr());
    return function([leaf](const Read& in) mutable { return leaf->forward(in[0].output); });
  }
  template <class Compute>
  static Step function(Compute compute) {
    return [compute](const Read& in) mutable -> Value { return {compute(in)}; };
  }

  Described& module_;
  const Layer& layer_;
};

Described::Described(Model model) : torch::nn::Module(model.name), model_(std::move(model)) {
  last_used_.resize(model_.inputs.size() + model_.layers.size());
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    const Layer& layer = model_.layers[i];
    steps_.push_back(std::visit(Build(*this, layer), layer.operation));
    for (const std::size_t value : layer.inputs) last_used_[value] = i;
  }
}

std::vector<Tensor> Described::forward(const std::vector<Tensor>& inputs) {
  if (inputs.size() != model_.inputs.size())
    throw Error(Code::invalid_argument,
                "it reads " + std::to_string(model_.inputs.size()) + " tensors, not " + std::to_string(inputs.size()),
                model_.name);
  std::vector<Value> values(last_used_.size());
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) values[i].output = inputs[i];
  const auto& last = model_.layers.back();
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Layer& layer = model_.layers[i];
    Read in;
    for (const std::size_t value : layer.inputs) in.push_back(values[value]);
    if (&layer == &last && is_training() && !model_.auxiliary.empty()) {
      for (const Value& head : in) all.push_back(head.output);
      return all;
    }
    values[model_.inputs.size() + i] = steps_[i](in);
    for (const std::size_t value : layer.inputs) {
      if (last_used_[value] == i) values[value] = {};
    }
  }
  return {values.back().output};
}

}  // namespace shoal::nn
