#include "shoal/nn/models/known_model.h"

#include <functional>
#include <numeric>
#include <variant>

#include "shoal/nn/models/model.h"

namespace shoal::nn::models {
namespace {

using exchange::LayerKind;

std::uint64_t elements_of(const Shape& shape) {
  return static_cast<std::uint64_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

LayerKind kind_of(const Operation& operation) {
  if (std::holds_alternative<Linear>(operation)) return LayerKind::fc;
  if (std::holds_alternative<Convolution>(operation)) return LayerKind::conv;
  if (std::holds_alternative<Embedding>(operation)) return LayerKind::embedding;
  return LayerKind::other;
}

}  // namespace

exchange::Model known_model(const std::string& name) {
  const auto described = describe(name);
  exchange::Model model{described.name, {}};
  std::vector<std::uint64_t> values;  // elements of the model's inputs, then of what each layer computes
  for (const auto& input : described.inputs) values.push_back(elements_of(input.shape));
  for (const auto& layer : described.layers) {
    exchange::Layer seen{layer.name, kind_of(layer.operation), {}, layer.fitted.flops, 0, elements_of(layer.fitted.output), 1};
    for (const auto input : layer.inputs) seen.inputs += values[input];
    values.push_back(seen.outputs);
    if (const auto* linear = std::get_if<Linear>(&layer.operation)) seen.rows = seen.outputs / static_cast<std::uint64_t>(linear->out);
    if (const auto* table = std::get_if<Embedding>(&layer.operation)) seen.rows = seen.outputs / static_cast<std::uint64_t>(table->width);
    for (const auto& p : layer.fitted.parameters) seen.parameters.push_back({layer.name + "." + p.name, elements_of(p.shape)});
    if (!seen.parameters.empty() || seen.forward_flops > 0) model.layers.push_back(std::move(seen));
  }
  return model;
}

}  // namespace shoal::nn::models
