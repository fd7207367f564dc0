#include "shoal/nn/models/operation.h"

#include <cassert>
#include <functional>
#include <numeric>

namespace shoal::nn::models {
namespace {

using Inputs = std::vector<Shape>;

double elements(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); }

Shape with_last(Shape shape, std::int64_t width) {
  shape.back() = width;
  return shape;
}

// Positions of a window along one side of an image.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil) {
  const std::int64_t room = size + 2 * padding - kernel;
  assert(room >= 0);
  std::int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (count - 1) * stride >= size + padding) --count;  // the last window would begin in the padding behind the image
  return count;
}

Fitted fit_one(Convolution& c, const Inputs& inputs) {
  const Shape& image = inputs.at(0);
  assert(image.size() == 3 && image[0] % c.groups == 0 && c.out % c.groups == 0);
  c.in = image[0];
  Fitted fitted{{c.out, windows(image[1], c.kernel[0], c.stride[0], c.padding[0], false),
                 windows(image[2], c.kernel[1], c.stride[1], c.padding[1], false)}};
  const Shape weight{c.out, c.in / c.groups, c.kernel[0], c.kernel[1]};
  fitted.parameters.push_back({"weight", weight});
  if (c.bias) fitted.parameters.push_back({"bias", {c.out}});
  fitted.flops = 2 * elements(weight) * static_cast<double>(fitted.output[1] * fitted.output[2]);
  return fitted;
}

Fitted fit_one(Linear& l, const Inputs& inputs) {
  l.in = inputs.at(0).back();
  Fitted fitted{with_last(inputs[0], l.out), {{"weight", {l.out, l.in}}}};
  if (l.bias) fitted.parameters.push_back({"bias", {l.out}});
  fitted.flops = 2 * elements(inputs[0]) * static_cast<double>(l.out);
  return fitted;
}

Fitted fit_one(BatchNorm& b, const Inputs& inputs) {
  b.in = inputs.at(0).front();
  return {inputs[0], {{"weight", {b.in}}, {"bias", {b.in}}}};
}

Fitted fit_one(LayerNorm& l, const Inputs& inputs) {
  l.in = inputs.at(0).back();
  return {inputs[0], {{"weight", {l.in}}, {"bias", {l.in}}}};
}

Fitted fit_one(ResponseNorm&, const Inputs& inputs) { return {inputs.at(0)}; }

Fitted fit_one(Embedding& e, const Inputs& inputs) {
  Shape output = inputs.at(0);
  output.push_back(e.width);
  return {output, {{"weight", {e.words, e.width}}}};
}

Fitted fit_one(Position& p, const Inputs& inputs) {
  assert(inputs.at(0).size() == 2 && inputs[0][0] <= p.places);
  p.in = inputs[0][1];
  return {inputs[0], {{"weight", {p.places, p.in}}}};
}

// Four gates a layer, each of the input and of the state, with two biases as in torch.nn.LSTM.
Fitted fit_one(Lstm& l, const Inputs& inputs) {
  l.in = inputs.at(0).back();
  Fitted fitted{with_last(inputs[0], l.width)};
  const auto places = static_cast<double>(inputs[0].front());
  for (std::int64_t layer = 0; layer < l.layers; ++layer) {
    const std::string end = "_l" + std::to_string(layer);
    const Shape of_input{4 * l.width, layer == 0 ? l.in : l.width}, of_state{4 * l.width, l.width};
    fitted.parameters.insert(fitted.parameters.end(), {{"weight_ih" + end, of_input},
                                                       {"weight_hh" + end, of_state},
                                                       {"bias_ih" + end, {4 * l.width}},
                                                       {"bias_hh" + end, {4 * l.width}}});
    fitted.flops += 2 * places * (elements(of_input) + elements(of_state));
  }
  return fitted;
}

Fitted fit_one(Activation&, const Inputs& inputs) { return {inputs.at(0)}; }
Fitted fit_one(Dropout&, const Inputs& inputs) { return {inputs.at(0)}; }

Fitted fit_one(Pool& p, const Inputs& inputs) {
  const Shape& image = inputs.at(0);
  assert(image.size() == 3);
  return {{image[0], windows(image[1], p.kernel[0], p.stride[0], p.padding[0], p.ceil),
           windows(image[2], p.kernel[1], p.stride[1], p.padding[1], p.ceil)}};
}

Fitted fit_one(GlobalAverage&, const Inputs& inputs) { return {{inputs.at(0).front(), 1, 1}}; }
Fitted fit_one(Flatten&, const Inputs& inputs) { return {{static_cast<std::int64_t>(elements(inputs.at(0)))}}; }

Fitted fit_one(Add&, const Inputs& inputs) {
  assert(inputs.size() == 2 && inputs[0] == inputs[1]);
  return {inputs[0]};
}

Fitted fit_one(Concatenate& c, const Inputs& inputs) {
  const std::size_t along = inputs.at(0).size() == 3 ? 0 : inputs[0].size() - 1;
  c.dimension = static_cast<std::int64_t>(along) + 1;
  Shape output = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) output[along] += inputs[i].at(along);
  return {output};
}

Fitted fit_one(Shortcut& s, const Inputs& inputs) {
  s.in = inputs.at(0).front();
  return {{s.out, windows(inputs[0].at(1), 1, s.stride, 0, false), windows(inputs[0].at(2), 1, s.stride, 0, false)}};
}

Fitted fit_one([[maybe_unused]] SelfAttention& a, const Inputs& inputs) {
  const Shape& qkv = inputs.at(0);
  assert(qkv.size() == 2 && qkv[1] % (3 * a.heads) == 0);
  const Shape output{qkv[0], qkv[1] / 3};
  return {output, {}, 4 * elements(output) * static_cast<double>(qkv[0])};  // queries by keys, weights by values
}

Fitted fit_one(AdditiveAttention& a, const Inputs& inputs) {
  const Shape &queries = inputs.at(0), &keys = inputs.at(1), &values = inputs.at(2);
  assert(queries.back() == keys.back() && keys[0] == values[0] && inputs.size() == 4);
  a.in = queries.back();
  return {{queries[0], values[1]}, {{"weight", {a.in}}}, 2 * static_cast<double>(queries[0] * keys[0] * (a.in + values[1]))};
}

Fitted fit_one(FedDecoder& d, const Inputs& inputs) {
  const Shape &read = inputs.at(0), &found = inputs.at(1), &keys = inputs.at(2);
  d.in = read.back();
  const std::int64_t places = read.front(), w = d.width;
  Lstm lstm{w, d.layers};
  AdditiveAttention attention;
  const Fitted steps = fit_one(lstm, {{places, d.in + w}}), finds = fit_one(attention, {{places, w}, keys, found, inputs.at(3)});
  Fitted all{{places, w}, {}, steps.flops + finds.flops + 2 * static_cast<double>(places * (w * w + 2 * w * w))};
  for (const Parameter& p : steps.parameters) all.parameters.push_back({"lstm." + p.name, p.shape});
  all.parameters.insert(all.parameters.end(), {{"query.weight", {w, w}},
                                               {"attention.weight", {w}},
                                               {"combine.weight", {w, 2 * w}},
                                               {"combine.bias", {w}}});
  return all;
}

Fitted fit_one(Heads&, const Inputs& inputs) { return {inputs.at(0)}; }

}  // namespace

Fitted fit(Operation& operation, const std::vector<Shape>& inputs) {
  return std::visit([&](auto& kind) { return fit_one(kind, inputs); }, operation);
}

}  // namespace shoal::nn::models
