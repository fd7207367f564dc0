#include "shoal/exchange/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "shoal/exchange/json_reader.h"
#include "shoal/exchange/strips.h"

namespace shoal::exchange {
namespace {

constexpr const char* kModelHint = "docs/plans.md describes a model's file";
constexpr std::array<std::pair<LayerKind, const char*>, 4> kKinds{
    {{LayerKind::fc, "fc"}, {LayerKind::conv, "conv"}, {LayerKind::embedding, "embedding"}, {LayerKind::other, "other"}}};
constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 48;

LayerKind read_kind(const Reader& r) {
  const auto text = r.text("kind");
  for (const auto& [kind, known] : kKinds) {
    if (text == known) return kind;
  }
  r.bad("kind", "is \"" + text + "\", not fc, conv, embedding or other");
}

Layer read_layer(const Reader& r) {
  Layer layer;
  layer.name = r.text("name");
  layer.kind = read_kind(r);
  layer.forward_flops = r.number("forward_flops", 0);
  layer.inputs = r.whole_or("inputs", kMostNumbers, 0);
  layer.outputs = r.whole_or("outputs", kMostNumbers, 0);
  layer.rows = r.whole_or("rows", kMostNumbers, 1);
  if (layer.rows == 0) r.bad("rows", "is 0");
  r.each("parameters", [&](const Reader& p) {
    layer.parameters.push_back({p.text("name"), p.whole("count", kMostNumbers), p.element_type_or("type", "f32")});
    if (layer.parameters.back().count == 0) p.bad("count", "is 0");
  });
  if ((layer.kind != LayerKind::fc && layer.kind != LayerKind::embedding) || layer.parameters.empty()) return layer;
  const auto per_row = layer.outputs / layer.rows;
  if (per_row == 0 || layer.parameters.front().count % per_row != 0) r.bad("outputs", "/ rows does not divide the first parameter, its weight");
  return layer;
}

}  // namespace

const char* name(LayerKind kind) {
  const auto known = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.first == kind; });
  return known->second;
}

std::uint64_t Layer::count() const {
  return std::accumulate(parameters.begin(), parameters.end(), std::uint64_t{0}, [](std::uint64_t sum, const Parameter& p) { return sum + p.count; });
}

std::uint64_t Model::parameters() const {
  return std::accumulate(layers.begin(), layers.end(), std::uint64_t{0}, [](std::uint64_t sum, const Layer& l) { return sum + l.count(); });
}

std::uint64_t Model::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& layer : layers) {
    for (const auto& p : layer.parameters) sum += p.count * size_of(p.type);
  }
  return sum;
}

double Model::forward_flops() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0, [](double sum, const Layer& l) { return sum + l.forward_flops; });
}

Model model_from_json(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where, kModelHint);
  const Reader root(json, "model", where, kModelHint);
  if (root.whole("version", 1000) != 1) root.bad("version", "is not 1");
  Model model;
  model.name = root.text("name");
  root.each("layers", [&](const Reader& r) { model.layers.push_back(read_layer(r)); });
  if (model.parameters() == 0) root.bad("layers", "have no parameters");
  if (!std::isfinite(model.forward_flops())) root.bad("layers", "have more operations than a number holds");
  return model;
}

std::string to_json(const Model& model) {
  Json layers = Json::array();
  for (const auto& layer : model.layers) {
    Json parameters = Json::array();
    for (const auto& p : layer.parameters) parameters.push_back({{"name", p.name}, {"count", p.count}, {"type", name(p.type)}});
    layers.push_back({{"name", layer.name}, {"kind", name(layer.kind)}, {"parameters", parameters}, {"forward_flops", layer.forward_flops},
                      {"inputs", layer.inputs}, {"outputs", layer.outputs}, {"rows", layer.rows}});
  }
  const Json json = {{"version", 1}, {"name", model.name}, {"layers", layers}};
  return json.dump(1) + "\n";
}

Measured as_measured(const Model& model, double samples, double flops) {
  constexpr double kBackward = 2;  // of forward
  Measured run;
  run.compute.forward_seconds = model.forward_flops() * samples / flops;
  run.compute.backward_seconds = kBackward * run.compute.forward_seconds;
  run.compute.multiply_rate = run.compute.own_rate = flops;
  double before = 0;  // seconds of forward before this layer
  for (const auto& layer : model.layers) {
    for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
      const auto& p = layer.parameters[i];
      TensorSpec tensor{p.name, p.type, p.count, static_cast<std::uint32_t>(run.tensors.size())};
      tensor.forward_at = before;
      tensor.by_element = true;  // as most optimizers are
      tensor.backward_at = kBackward * (run.compute.forward_seconds - before);
      if (layer.kind == LayerKind::fc && i == 0 && p.type == DType::f32 && p.count >= kLeastLayer) {
        tensor.rows = static_cast<std::uint64_t>(std::llround(samples * static_cast<double>(layer.rows)));
        tensor.outputs = layer.outputs / layer.rows;
        tensor.divisible = true;
        tensor.takes_data = run.tensors.empty();
      }
      if (layer.kind == LayerKind::embedding && i == 0) {
        tensor.width = layer.outputs / layer.rows;
        const auto looked_up = static_cast<std::uint64_t>(std::llround(samples * static_cast<double>(layer.rows)));
        tensor.touched = std::min(looked_up, p.count / tensor.width);  // as if no word came twice
      }
      run.tensors.push_back(std::move(tensor));
    }
    before += layer.forward_flops * samples / flops;
  }
  return run;
}

}  // namespace shoal::exchange
