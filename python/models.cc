#include "shoal/nn/models/model.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "shoal/nn/described.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using namespace nn::models;
using py::literals::operator""_a;

// Each operation as the class that Python makes it of, and its arguments: torch.nn's, or one of shoal.models.
using Recipe = std::pair<const char*, py::dict>;

py::tuple sides(const Extent& extent) { return py::make_tuple(extent[0], extent[1]); }

const char* class_of(Function function) {
  switch (function) {
    case Function::relu: return "ReLU";
    case Function::tanh: return "Tanh";
    case Function::sigmoid: return "Sigmoid";
    case Function::gelu: return "GELU";
  }
  return "";
}

struct ToPython {
  Recipe operator()(const Convolution& c) const {
    return {"Conv2d",
            py::dict("in_channels"_a = c.in, "out_channels"_a = c.out, "kernel_size"_a = sides(c.kernel),
                     "stride"_a = sides(c.stride), "padding"_a = sides(c.padding), "groups"_a = c.groups, "bias"_a = c.bias)};
  }
  Recipe operator()(const Linear& l) const {
    return {"Linear", py::dict("in_features"_a = l.in, "out_features"_a = l.out, "bias"_a = l.bias)};
  }
  Recipe operator()(const BatchNorm& b) const {
    return {"BatchNorm2d", py::dict("num_features"_a = b.in, "eps"_a = b.epsilon)};
  }
  Recipe operator()(const LayerNorm& l) const { return {"LayerNorm", py::dict("normalized_shape"_a = l.in)}; }
  Recipe operator()(const ResponseNorm& r) const {
    return {"LocalResponseNorm", py::dict("size"_a = r.size, "alpha"_a = r.alpha, "beta"_a = r.beta, "k"_a = r.k)};
  }
  Recipe operator()(const Embedding& e) const {
    return {"Embedding", py::dict("num_embeddings"_a = e.words, "embedding_dim"_a = e.width,
                                  "padding_idx"_a = e.padded ? std::optional<int>(0) : std::nullopt)};
  }
  Recipe operator()(const Position& p) const { return {"Position", py::dict("places"_a = p.places, "width"_a = p.in)}; }
  Recipe operator()(const Lstm& l) const {
    return {"LSTM",
            py::dict("input_size"_a = l.in, "hidden_size"_a = l.width, "num_layers"_a = l.layers, "batch_first"_a = true)};
  }
  Recipe operator()(const Activation& a) const { return {class_of(a.function), py::dict()}; }
  Recipe operator()(const Pool& p) const {
    return {p.kind == Pool::Kind::max ? "MaxPool2d" : "AvgPool2d",
            py::dict("kernel_size"_a = sides(p.kernel), "stride"_a = sides(p.stride), "padding"_a = sides(p.padding),
                     "ceil_mode"_a = p.ceil)};
  }
  Recipe operator()(const GlobalAverage&) const { return {"AdaptiveAvgPool2d", py::dict("output_size"_a = 1)}; }
  Recipe operator()(const Flatten&) const { return {"Flatten", py::dict()}; }
  Recipe operator()(const Dropout& d) const { return {"Dropout", py::dict("p"_a = d.p)}; }
  Recipe operator()(const Add&) const { return {"Add", py::dict()}; }
  Recipe operator()(const Concatenate& c) const { return {"Concatenate", py::dict("dim"_a = c.dimension)}; }
  Recipe operator()(const Shortcut& s) const {
    return {"Shortcut", py::dict("stride"_a = s.stride, "missing"_a = s.out - s.in)};
  }
  Recipe operator()(const SelfAttention& a) const {
    return {"SelfAttention", py::dict("heads"_a = a.heads, "causal"_a = a.causal)};
  }
  Recipe operator()(const AdditiveAttention& a) const { return {"AdditiveAttention", py::dict("width"_a = a.in)}; }
  Recipe operator()(const FedDecoder& d) const {
    return {"FedDecoder", py::dict("inputs"_a = d.in, "width"_a = d.width, "layers"_a = d.layers)};
  }
  Recipe operator()(const Heads&) const { return {"Heads", py::dict()}; }
};

const char* name_of(Initial initial) {
  switch (initial) {
    case Initial::layers: return "layers";
    case Initial::he: return "he";
    case Initial::small: return "small";
  }
  return "";
}

py::dict as_dict(const Model& model) {
  py::list inputs, layers;
  for (const Input& input : model.inputs)
    inputs.append(py::dict("name"_a = input.name, "shape"_a = input.shape, "words"_a = input.words));
  for (const Layer& layer : model.layers) {
    const auto [type, arguments] = std::visit(ToPython(), layer.operation);
    layers.append(py::dict("name"_a = layer.name, "type"_a = type, "arguments"_a = arguments, "inputs"_a = layer.inputs,
                           "shape"_a = layer.fitted.output, "flops"_a = layer.fitted.flops));
  }
  return py::dict("name"_a = model.name, "source"_a = model.source, "inputs"_a = inputs, "layers"_a = layers,
                  "auxiliary"_a = model.auxiliary, "initial"_a = name_of(model.initial), "parameters"_a = model.parameters(),
                  "flops"_a = model.flops());
}

}  // namespace

void bind_models(py::module_& module) {
  module.def("model_names", &names);
  module.def("describe", [](const std::string& name) { return as_dict(describe(name)); });

  // What libtorch programs get of a description; here so that the tests hold it against Python's module.
  py::class_<nn::Described, std::shared_ptr<nn::Described>>(module, "Described")
      .def(py::init([](const std::string& name) { return std::make_shared<nn::Described>(describe(name)); }))
      .def("named_parameters",
           [](const nn::Described& described) {
             std::vector<std::pair<std::string, at::Tensor>> all;
             for (const auto& named : described.named_parameters()) all.emplace_back(named.key(), named.value());
             return all;
           })
      .def("train", [](nn::Described& described, bool on) { described.train(on); })
      .def("forward", &nn::Described::forward, py::call_guard<py::gil_scoped_release>());
}

}  // namespace shoal::python
