// Szegedy et al., CVPR 2016, with the auxiliary classifier. Parameters are named as in torchvision's model.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {
namespace {

using Value = Network::Value;
constexpr Extent one{1, 1}, three{3, 3}, five{5, 5}, flat{1, 7}, tall{7, 1}, two{2, 2};

// A convolution that keeps the size, its batch normalisation and ReLU: one box of the paper's figures.
class InceptionBlocks {
 public:
  explicit InceptionBlocks(Network& net) : net_(net) {}

  Value box(const std::string& name, Value in, std::int64_t out, Extent kernel) {
    return box(name, in, {.out = out, .kernel = kernel, .padding = {kernel[0] / 2, kernel[1] / 2}});
  }
  Value box(const std::string& name, Value in, Convolution convolution) {
    convolution.bias = false;
    const Value x = net_.apply(name + ".bn", BatchNorm{.epsilon = 1e-3}, net_.apply(name + ".conv", convolution, in));
    return net_.apply(name + ".relu", Activation{Function::relu}, x);
  }
  // Boxes in a row, named NAME_1, NAME_2 and so on.
  Value boxes(const std::string& name, Value in, std::initializer_list<std::pair<std::int64_t, Extent>> row) {
    int i = 0;
    for (const auto& [out, kernel] : row) in = box(name + "_" + std::to_string(++i), in, out, kernel);
    return in;
  }
  Value halving(const std::string& name, Value in, std::int64_t out) {
    return box(name, in, {.out = out, .kernel = three, .stride = two});
  }
  Value averaged(const std::string& name, Value in, std::int64_t out) {
    return box(name + "_pool", net_.apply(name + "_average", Pool{Pool::Kind::average, three, one, one}, in), out, one);
  }
  Value largest(const std::string& name, Value in) { return net_.apply(name, Pool{Pool::Kind::max, three, two}, in); }
  Value join(const std::string& name, std::vector<Value> branches) {
    return net_.apply(name, Concatenate{}, std::move(branches));
  }

  // Figure 5: 35 x 35.
  Value a(const std::string& m, Value in, std::int64_t pooled) {
    const Value b1 = box(m + ".branch1x1", in, 64, one);
    const Value b5 = boxes(m + ".branch5x5", in, {{48, one}, {64, five}});
    const Value b3 = boxes(m + ".branch3x3dbl", in, {{64, one}, {96, three}, {96, three}});
    return join(m + ".concatenate", {b1, b5, b3, averaged(m + ".branch", in, pooled)});
  }
  // Figure 10: from 35 x 35 to 17 x 17.
  Value b(const std::string& m, Value in) {
    const Value b3 = halving(m + ".branch3x3", in, 384);
    const Value twice = halving(m + ".branch3x3dbl_3", boxes(m + ".branch3x3dbl", in, {{64, one}, {96, three}}), 96);
    return join(m + ".concatenate", {b3, twice, largest(m + ".branch_pool", in)});
  }
  // Figure 6: 17 x 17.
  Value c(const std::string& m, Value in, std::int64_t width) {
    const Value b1 = box(m + ".branch1x1", in, 192, one);
    const Value b7 = boxes(m + ".branch7x7", in, {{width, one}, {width, flat}, {192, tall}});
    const Value twice =
        boxes(m + ".branch7x7dbl", in, {{width, one}, {width, tall}, {width, flat}, {width, tall}, {192, flat}});
    return join(m + ".concatenate", {b1, b7, twice, averaged(m + ".branch", in, 192)});
  }
  // From 17 x 17 to 8 x 8.
  Value d(const std::string& m, Value in) {
    const Value b3 = halving(m + ".branch3x3_2", box(m + ".branch3x3_1", in, 192, one), 320);
    const Value b7 = halving(m + ".branch7x7x3_4", boxes(m + ".branch7x7x3", in, {{192, one}, {192, flat}, {192, tall}}), 192);
    return join(m + ".concatenate", {b3, b7, largest(m + ".branch_pool", in)});
  }
  // Figure 7: 8 x 8.
  Value e(const std::string& m, Value in) {
    const Value b1 = box(m + ".branch1x1", in, 320, one);
    const Value b3 = box(m + ".branch3x3_1", in, 384, one);
    const Value b3a = box(m + ".branch3x3_2a", b3, 384, {1, 3}), b3b = box(m + ".branch3x3_2b", b3, 384, {3, 1});
    const Value twice = boxes(m + ".branch3x3dbl", in, {{448, one}, {384, three}});
    const Value twice_a = box(m + ".branch3x3dbl_3a", twice, 384, {1, 3}),
                twice_b = box(m + ".branch3x3dbl_3b", twice, 384, {3, 1});
    return join(m + ".concatenate", {b1, b3a, b3b, twice_a, twice_b, averaged(m + ".branch", in, 192)});
  }

 private:
  Network& net_;
};

Value logits(Network& net, const std::string& dot, Value in) {
  return net.apply(dot + "fc", Linear{1000}, net.apply(dot + "flatten", Flatten{}, in));
}

}  // namespace

Model inception_v3(const std::string& name) {
  Network net(name, "Szegedy et al., CVPR 2016, with the auxiliary classifier", Initial::he);
  InceptionBlocks blocks(net);
  Value at = net.input("image", {3, 299, 299});
  at = blocks.halving("Conv2d_1a_3x3", at, 32);
  at = blocks.box("Conv2d_2a_3x3", at, {.out = 32, .kernel = three});
  at = blocks.largest("maxpool1", blocks.box("Conv2d_2b_3x3", at, 64, three));
  at = blocks.box("Conv2d_3b_1x1", at, 80, one);
  at = blocks.largest("maxpool2", blocks.box("Conv2d_4a_3x3", at, {.out = 192, .kernel = three}));
  at = blocks.a("Mixed_5b", at, 32);
  at = blocks.a("Mixed_5d", blocks.a("Mixed_5c", at, 64), 64);
  at = blocks.c("Mixed_6b", blocks.b("Mixed_6a", at), 128);
  at = blocks.c("Mixed_6d", blocks.c("Mixed_6c", at, 160), 160);
  at = blocks.c("Mixed_6e", at, 192);

  Value side = net.apply("AuxLogits.pool", Pool{Pool::Kind::average, five, three}, at);
  side = blocks.box("AuxLogits.conv0", side, 128, one);
  side = blocks.box("AuxLogits.conv1", side, {.out = 768, .kernel = five});
  side = logits(net, "AuxLogits.", net.apply("AuxLogits.average", GlobalAverage{}, side));

  at = blocks.e("Mixed_7b", blocks.d("Mixed_7a", at));
  at = net.apply("avgpool", GlobalAverage{}, blocks.e("Mixed_7c", at));
  at = logits(net, "", net.apply("dropout", Dropout{0.5}, at));
  net.apply("heads", Heads{}, {at, side});
  return std::move(net).finish({0.4});  // the weight of TensorFlow's release; the paper gives none
}

}  // namespace shoal::nn::models
