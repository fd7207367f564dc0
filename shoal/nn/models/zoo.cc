#include "shoal/nn/models/zoo.h"

#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::nn::models {
namespace {

struct Entry {
  const char* name;
  Model (*write)(const std::string& name);
};
constexpr Entry entries[] = {
    {"lenet", small_images},
    {"fcnet", small_images},
    {"cifar-quick", small_images},
    {"resnet-20", small_resnet},
    {"alexnet", alexnet},
    {"overfeat-fast", alexnet},
    {"vgg-a", vgg},
    {"vgg19", vgg},
    {"vgg19-22k", vgg},
    {"googlenet", googlenet},
    {"inception-v3", inception_v3},
    {"resnet-50", resnet},
    {"resnet-152", resnet},
    {"cd-dnn", speech},
    {"seq2seq", text},
    {"char-transformer", text},
};

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (const Entry& entry : entries) found.emplace_back(entry.name);
    return found;
  }();
  return all;
}

Model describe(const std::string& name) {
  const auto* const entry =
      std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) { return e.name == name; });
  if (entry != std::end(entries)) return entry->write(name);
  std::string all;
  for (const std::string& known : names()) all += (all.empty() ? "" : ", ") + known;
  throw Error(Code::invalid_argument, "there is no such model", name, all);
}

std::uint64_t Model::parameters() const {
  std::uint64_t sum = 0;
  for (const Layer& layer : layers) {
    for (const Parameter& tensor : layer.fitted.parameters) {
      std::uint64_t elements = 1;
      for (const std::int64_t side : tensor.shape) elements *= static_cast<std::uint64_t>(side);
      sum += elements;
    }
  }
  return sum;
}

double Model::flops() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.fitted.flops;
  return sum;
}

}  // namespace shoal::nn::models
