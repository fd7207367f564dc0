// Convolutions with a wide linear head, before the filters became small.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {
namespace {

// The halves of the paper's two GPUs are groups.
Model krizhevsky() {
  Network net("alexnet", "Krizhevsky et al., NIPS 2012", Initial::he);
  constexpr Pool pool{Pool::Kind::max, {3, 3}, {2, 2}};
  constexpr ResponseNorm norm{
      .size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2};  // torch divides alpha by the size, the paper does not
  Chain features(net, "features.", net.input("image", {3, 227, 227}));
  features.then(Convolution{.out = 96, .kernel = {11, 11}, .stride = {4, 4}}).relu().then(norm).then(pool);
  features.then(Convolution{.out = 256, .kernel = {5, 5}, .padding = {2, 2}, .groups = 2}).relu().then(norm).then(pool);
  features.then(Convolution{.out = 384, .kernel = {3, 3}, .padding = {1, 1}}).relu();
  features.then(Convolution{.out = 384, .kernel = {3, 3}, .padding = {1, 1}, .groups = 2}).relu();
  features.then(Convolution{.out = 256, .kernel = {3, 3}, .padding = {1, 1}, .groups = 2}).relu().then(pool);
  Chain classifier(net, "classifier.", net.apply("flatten", Flatten{}, features.value()));
  classifier.then(Linear{4096}).relu().then(Dropout{0.5}).then(Linear{4096}).relu().then(Dropout{0.5}).then(Linear{1000});
  return std::move(net).finish();
}

Model overfeat_fast() {
  Network net("overfeat-fast", "Sermanet et al., ICLR 2014, table 1", Initial::he);
  constexpr Pool halve{Pool::Kind::max, {2, 2}, {2, 2}};
  Chain features(net, "features.", net.input("image", {3, 231, 231}));
  features.then(Convolution{.out = 96, .kernel = {11, 11}, .stride = {4, 4}}).relu().then(halve);
  features.then(Convolution{.out = 256, .kernel = {5, 5}}).relu().then(halve);
  features.then(Convolution{.out = 512, .kernel = {3, 3}, .padding = {1, 1}}).relu();
  features.then(Convolution{.out = 1024, .kernel = {3, 3}, .padding = {1, 1}}).relu();
  features.then(Convolution{.out = 1024, .kernel = {3, 3}, .padding = {1, 1}}).relu().then(halve);
  Chain classifier(net, "classifier.", net.apply("flatten", Flatten{}, features.value()));
  classifier.then(Linear{3072}).relu().then(Dropout{0.5}).then(Linear{4096}).relu().then(Dropout{0.5}).then(Linear{1000});
  return std::move(net).finish();
}

}  // namespace

Model alexnet(const std::string& name) { return name == "alexnet" ? krizhevsky() : overfeat_fast(); }

}  // namespace shoal::nn::models
