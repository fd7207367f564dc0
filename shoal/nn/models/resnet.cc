// He et al., CVPR 2016. Parameters are named as in torchvision's models.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {
namespace {

using Value = Network::Value;

class ResidualBlocks {
 public:
  explicit ResidualBlocks(Network& net) : net_(net) {}

  // A convolution without bias that keeps the size but for its stride, and its batch normalisation.
  Value normalised(const std::string& convolution, const std::string& norm, Value in, std::int64_t out, std::int64_t kernel,
                   std::int64_t stride = 1) {
    const std::int64_t padding = kernel / 2;
    const Convolution c{
        .out = out, .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}, .bias = false};
    return net_.apply(norm, BatchNorm{}, net_.apply(convolution, c, in));
  }
  Value relu(const std::string& name, Value in) { return net_.apply(name, Activation{Function::relu}, in); }

  // Figure 5, left, with a shortcut without parameters (option A).
  Value basic(const std::string& b, Value in, std::int64_t width, std::int64_t stride) {
    Value x = relu(b + ".relu1", normalised(b + ".conv1", b + ".bn1", in, width, 3, stride));
    x = normalised(b + ".conv2", b + ".bn2", x, width, 3);
    if (stride > 1) in = net_.apply(b + ".shortcut", Shortcut{stride, width}, in);
    return relu(b + ".relu2", net_.apply(b + ".add", Add{}, {x, in}));
  }
  // Figure 5, right: the first 1x1 strides, as in the paper; a projection where the shape changes (option B).
  Value bottleneck(const std::string& b, Value in, std::int64_t width, std::int64_t stride) {
    Value x = relu(b + ".relu1", normalised(b + ".conv1", b + ".bn1", in, width, 1, stride));
    x = relu(b + ".relu2", normalised(b + ".conv2", b + ".bn2", x, width, 3));
    x = normalised(b + ".conv3", b + ".bn3", x, 4 * width, 1);
    if (net_.shape(in) != net_.shape(x)) in = normalised(b + ".downsample.0", b + ".downsample.1", in, 4 * width, 1, stride);
    return relu(b + ".relu3", net_.apply(b + ".add", Add{}, {x, in}));
  }
  Value classify(Value in, std::int64_t classes) {
    const Value mean = net_.apply("flatten", Flatten{}, net_.apply("avgpool", GlobalAverage{}, in));
    return net_.apply("fc", Linear{classes}, mean);
  }

 private:
  Network& net_;
};

std::string block_name(int stage, int block) { return "layer" + std::to_string(stage) + "." + std::to_string(block); }

}  // namespace

Model small_resnet(const std::string& name) {
  Network net(name, "He et al., CVPR 2016, 4.2, n = 3", Initial::he);
  ResidualBlocks blocks(net);
  Value at = blocks.relu("relu", blocks.normalised("conv1", "bn1", net.input("image", {3, 32, 32}), 16, 3));
  for (int stage = 1; stage <= 3; ++stage) {
    for (int i = 0; i < 3; ++i) at = blocks.basic(block_name(stage, i), at, 8 << stage, stage > 1 && i == 0 ? 2 : 1);
  }
  blocks.classify(at, 10);
  return std::move(net).finish();
}

Model resnet(const std::string& name) {
  Network net(name, "He et al., CVPR 2016, table 1", Initial::he);
  ResidualBlocks blocks(net);
  const std::array<int, 4> depth = name == "resnet-50" ? std::array{3, 4, 6, 3} : std::array{3, 8, 36, 3};
  Value at = blocks.relu("relu", blocks.normalised("conv1", "bn1", net.input("image", {3, 224, 224}), 64, 7, 2));
  at = net.apply("maxpool", Pool{Pool::Kind::max, {3, 3}, {2, 2}, {1, 1}}, at);
  for (int stage = 1; stage <= 4; ++stage) {
    for (int i = 0; i < depth[static_cast<std::size_t>(stage - 1)]; ++i)
      at = blocks.bottleneck(block_name(stage, i), at, 32 << stage, stage > 1 && i == 0 ? 2 : 1);
  }
  blocks.classify(at, 1000);
  return std::move(net).finish();
}

}  // namespace shoal::nn::models
