// Szegedy et al., CVPR 2015, table 1, without its two auxiliary classifiers.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {
namespace {

using Value = Network::Value;

// A row of table 1: channels of the four branches, with those that a 1x1 convolution reduces to.
struct Block {
  const char* name;
  std::int64_t one, reduce_three, three, reduce_five, five, pooled;
};

Value inception(Network& net, Value in, const Block& block) {
  const std::string name = std::string("inception") + block.name;
  const auto branch = [&](const char* which, Value from) { return Chain(net, name + which, from); };
  const Value one = branch(".branch1.", in).then(Convolution{block.one, {1, 1}}).relu().value();
  const Value three = branch(".branch2.", in)
                          .then(Convolution{block.reduce_three, {1, 1}})
                          .relu()
                          .then(Convolution{.out = block.three, .kernel = {3, 3}, .padding = {1, 1}})
                          .relu()
                          .value();
  const Value five = branch(".branch3.", in)
                         .then(Convolution{block.reduce_five, {1, 1}})
                         .relu()
                         .then(Convolution{.out = block.five, .kernel = {5, 5}, .padding = {2, 2}})
                         .relu()
                         .value();
  const Value pooled = branch(".branch4.", in)
                           .then(Pool{Pool::Kind::max, {3, 3}, {1, 1}, {1, 1}})
                           .then(Convolution{block.pooled, {1, 1}})
                           .relu()
                           .value();
  return net.apply(name + ".concatenate", Concatenate{}, {one, three, five, pooled});
}

}  // namespace

Model googlenet(const std::string& name) {
  Network net(name, "Szegedy et al., CVPR 2015, table 1, without its auxiliary classifiers", Initial::he);
  constexpr Pool pool{.kind = Pool::Kind::max, .kernel = {3, 3}, .stride = {2, 2}, .ceil = true};
  constexpr ResponseNorm norm{.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1};
  Chain stem(net, "stem.", net.input("image", {3, 224, 224}));
  stem.then(Convolution{.out = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}}).relu().then(pool).then(norm);
  stem.then(Convolution{64, {1, 1}})
      .relu()
      .then(Convolution{.out = 192, .kernel = {3, 3}, .padding = {1, 1}})
      .relu()
      .then(norm)
      .then(pool);
  Value at = stem.value();
  for (const Block& block : {Block{"3a", 64, 96, 128, 16, 32, 32}, {"3b", 128, 128, 192, 32, 96, 64}})
    at = inception(net, at, block);
  at = net.apply("pool3", pool, at);
  for (const Block& block : {Block{"4a", 192, 96, 208, 16, 48, 64},
                             {"4b", 160, 112, 224, 24, 64, 64},
                             {"4c", 128, 128, 256, 24, 64, 64},
                             {"4d", 112, 144, 288, 32, 64, 64},
                             {"4e", 256, 160, 320, 32, 128, 128}})
    at = inception(net, at, block);
  at = net.apply("pool4", pool, at);
  for (const Block& block : {Block{"5a", 256, 160, 320, 32, 128, 128}, {"5b", 384, 192, 384, 48, 128, 128}})
    at = inception(net, at, block);
  Chain(net, "classifier.", at).then(GlobalAverage{}).then(Flatten{}).then(Dropout{0.4}).then(Linear{1000});
  return std::move(net).finish();
}

}  // namespace shoal::nn::models
