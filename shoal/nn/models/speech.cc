// Fully connected networks that tell a speech frame's senone.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {

// Seven hidden layers of 2048 (Das et al. 2016, 5.4). Its input and output are those of the CD-DNN which that paper trains: 11 frames of
// 39 features, and 9304 senones.
Model speech(const std::string& name) {
  Network net(name, "Seide, Li and Yu, Interspeech 2011");
  Chain layers(net, "", net.input("frames", {11 * 39}));
  for (int i = 0; i < 7; ++i) layers.then(Linear{2048}).then(Activation{Function::sigmoid});
  layers.then(Linear{9304});
  return std::move(net).finish();
}

}  // namespace shoal::nn::models
