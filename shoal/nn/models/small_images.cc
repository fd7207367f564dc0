// Networks for small images that train in minutes on a CPU.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {
namespace {

using enum Pool::Kind;
constexpr Pool halve{max, {2, 2}, {2, 2}};

Model lenet() {
  Network net("lenet", "LeCun et al., Proc. IEEE 86(11), 1998, with ReLU and max-pooling");
  Chain layers(net, "", net.input("image", {1, 28, 28}));
  layers.then(Convolution{.out = 6, .kernel = {5, 5}, .padding = {2, 2}}).relu().then(halve);
  layers.then(Convolution{.out = 16, .kernel = {5, 5}}).relu().then(halve).then(Flatten{});
  layers.then(Linear{120}).relu().then(Linear{84}).relu().then(Linear{10});
  return std::move(net).finish();
}

Model fcnet() {
  Network net("fcnet", "three convolutions and two wide linear layers: most of its bytes are in the latter");
  Chain layers(net, "", net.input("image", {1, 28, 28}));
  layers.then(Convolution{.out = 16, .kernel = {3, 3}, .padding = {1, 1}}).relu().then(halve);
  layers.then(Convolution{.out = 32, .kernel = {3, 3}, .padding = {1, 1}}).relu().then(halve);
  layers.then(Convolution{.out = 32, .kernel = {3, 3}, .padding = {1, 1}}).relu().then(Flatten{});
  layers.then(Linear{2048}).relu().then(Linear{2048}).relu().then(Linear{10});
  return std::move(net).finish();
}

Model cifar_quick() {
  Network net("cifar-quick", "Caffe's CIFAR-10 quick, after Krizhevsky's cuda-convnet (2011)");
  constexpr Pool largest{.kind = max, .kernel = {3, 3}, .stride = {2, 2}, .ceil = true};
  constexpr Pool mean{.kind = average, .kernel = {3, 3}, .stride = {2, 2}, .ceil = true};
  const auto convolution = [](std::int64_t out) { return Convolution{.out = out, .kernel = {5, 5}, .padding = {2, 2}}; };
  Chain layers(net, "", net.input("image", {3, 32, 32}));
  layers.then(convolution(32)).then(largest).relu();
  layers.then(convolution(32)).relu().then(mean);
  layers.then(convolution(64)).relu().then(mean).then(Flatten{});
  layers.then(Linear{64}).then(Linear{10});
  return std::move(net).finish();
}

}  // namespace

Model small_images(const std::string& name) { return name == "lenet" ? lenet() : name == "fcnet" ? fcnet() : cifar_quick(); }

}  // namespace shoal::nn::models
