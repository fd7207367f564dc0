// The families of the zoo, one file each. Each function writes down the member that `name` names.
#pragma once

#include "shoal/nn/models/model.h"

namespace shoal::nn::models {

Model small_images(const std::string& name);  // lenet, fcnet, cifar-quick
Model alexnet(const std::string& name);       // alexnet, overfeat-fast
Model vgg(const std::string& name);           // vgg-a, vgg19, vgg19-22k
Model googlenet(const std::string& name);
Model inception_v3(const std::string& name);
Model small_resnet(const std::string& name);  // resnet-20
Model resnet(const std::string& name);        // resnet-50, resnet-152
Model speech(const std::string& name);        // cd-dnn
Model text(const std::string& name);          // seq2seq, char-transformer

}  // namespace shoal::nn::models
