// Simonyan and Zisserman, ICLR 2015, table 1. Parameters are named as in torchvision's models.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {

Model vgg(const std::string& name) {
  const bool large = name != "vgg-a";
  const std::int64_t classes = name == "vgg19-22k" ? 21'841 : 1000;  // of ImageNet22K (Zhang et al., ATC 2017, table 3)
  Network net(name, large ? "Simonyan and Zisserman, ICLR 2015, table 1, E" : "Simonyan and Zisserman, ICLR 2015, table 1, A",
              Initial::he);
  struct Stage {
    std::int64_t width;
    int in_a, in_e;  // its convolutions
  };
  Chain features(net, "features.", net.input("image", {3, 224, 224}));
  for (const auto& [width, in_a, in_e] : {Stage{64, 1, 2}, {128, 1, 2}, {256, 2, 4}, {512, 2, 4}, {512, 2, 4}}) {
    for (int i = 0; i < (large ? in_e : in_a); ++i)
      features.then(Convolution{.out = width, .kernel = {3, 3}, .padding = {1, 1}}).relu();
    features.then(Pool{Pool::Kind::max, {2, 2}, {2, 2}});
  }
  Chain classifier(net, "classifier.", net.apply("flatten", Flatten{}, features.value()));
  classifier.then(Linear{4096}).relu().then(Dropout{0.5}).then(Linear{4096}).relu().then(Dropout{0.5}).then(Linear{classes});
  return std::move(net).finish();
}

}  // namespace shoal::nn::models
