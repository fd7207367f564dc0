// Goal: each model of the zoo is the one of its paper. Method: parameters, multiply-adds and shapes of the descriptions beside figures that
// others published or that follow from the paper's table by hand; and what every description must satisfy.
#include "shoal/nn/models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "shoal/core/error.h"

namespace shoal::nn::models {
namespace {

using testing::ElementsAre;

const std::map<std::string, std::uint64_t> published{
    // LeNet-5 with all of S2's maps in each of C3's: 156 + 2,416 + 48,120 + 10,164 + 850.
    {"lenet", 61'706},
    // 160 + 4,640 + 9,248 + 1,568 x 2,048 + 2,048 x 2,048 + 2,048 x 10, with 2 x 2,048 + 10 biases.
    {"fcnet", 7'444'202},
    // Zhang et al. (Poseidon), ATC 2017, table 3: 145.6 K. 2,432 + 25,632 + 51,264 + 65,600 + 650.
    {"cifar-quick", 145'578},
    // He et al., CVPR 2016, table 6: 0.27 M; the shortcuts have none.
    {"resnet-20", 269'722},
    // Krizhevsky et al., NIPS 2012: 60 million. The same as Caffe's model of it.
    {"alexnet", 60'965'224},
    // Sermanet et al., ICLR 2014, table 4: 145 million.
    {"overfeat-fast", 145'920'872},
    // Simonyan and Zisserman, ICLR 2015, table 2: 133 and 144 million. The same as torchvision's vgg11 and vgg19.
    {"vgg-a", 132'863'336},
    {"vgg19", 143'667'240},
    // Zhang et al., ATC 2017, table 3: 229 M, which is VGG19 with 21,841 classes.
    {"vgg19-22k", 143'667'240 + 4'097 * (21'841 - 1'000)},
    // Twelve times fewer than Krizhevsky's (Szegedy et al., CVPR 2015); the same as Caffe's model without its
    // auxiliary classifiers.
    {"googlenet", 6'998'552},
    // Zhang et al., ATC 2017, table 3: 27 M. The same as torchvision's with its auxiliary classifier.
    {"inception-v3", 27'161'264},
    // Zhang et al., ATC 2017, table 3: 60.2 M for the second. The same as torchvision's.
    {"resnet-50", 25'557'032},
    {"resnet-152", 60'192'808},
    // Layers of 429 x 2,048, six of 2,048 x 2,048 and 2,048 x 9,304, with biases.
    {"cd-dnn", 880'640 + 6 * 4'196'352 + 19'063'896},
    // Embeddings 2 x 8,000 x 512; 4 LSTM layers of 2,101,248, of which the decoder's first also reads the 512 numbers of the place before; attention
    // 2 x 512 x 512 + 512; 1,024 x 512 + 512; 512 x 8,000 + 8,000.
    {"seq2seq", 8'192'000 + 4 * 2'101'248 + 4 * 512 * 512 + 524'800 + 524'800 + 4'104'000},
    // 4 blocks of 12 x 192 x 192 + 13 x 192; 65 + 128 embeddings; the last norm; the output: 1.83 M.
    {"char-transformer", 4 * (12 * 192 * 192 + 13 * 192) + 193 * 192 + 2 * 192 + 65 * 193}};

TEST(Zoo, parameters_are_as_many_as_the_papers_say) {
  for (const std::string& name : names()) EXPECT_EQ(describe(name).parameters(), published.at(name)) << name;
}

// Multiply-adds of one image, as the papers print them with two or three digits.
TEST(Zoo, operations_are_those_of_the_papers) {
  const auto giga = [](const char* name) { return describe(name).flops() / 2e9; };
  EXPECT_NEAR(giga("resnet-50"), 3.8, 0.06);  // He et al., table 1
  EXPECT_NEAR(giga("resnet-152"), 11.3, 0.06);
  EXPECT_NEAR(giga("vgg19"), 19.6, 0.06);  // the same, figure 3
  EXPECT_NEAR(giga("googlenet"), 1.5, 0.1);  // Szegedy et al. 2015: 1.5 billion
  EXPECT_NEAR(giga("inception-v3"), 5.7, 0.1);  // torchvision's table of models
  EXPECT_NEAR(describe("fcnet").flops(), 17'787'392, 0);  // by hand, in app/diagnosis.cc
}

// The shapes of the papers' tables and figures, at a few places that a wrong stride or padding would change.
TEST(Zoo, shapes_on_the_way_are_those_of_the_papers) {
  const auto shape = [](const char* model, const std::string& name) {
    for (const Layer& layer : describe(model).layers) {
      if (layer.name == name) return layer.fitted.output;
    }
    return Shape{};
  };
  EXPECT_THAT(shape("alexnet", "flatten"), ElementsAre(256 * 6 * 6));
  EXPECT_THAT(shape("overfeat-fast", "features.5"), ElementsAre(256, 12, 12));
  EXPECT_THAT(shape("googlenet", "inception4a.concatenate"), ElementsAre(512, 14, 14));
  EXPECT_THAT(shape("googlenet", "inception5b.concatenate"), ElementsAre(1024, 7, 7));
  EXPECT_THAT(shape("inception-v3", "Mixed_5d.concatenate"), ElementsAre(288, 35, 35));
  EXPECT_THAT(shape("inception-v3", "Mixed_6e.concatenate"), ElementsAre(768, 17, 17));
  EXPECT_THAT(shape("inception-v3", "Mixed_7c.concatenate"), ElementsAre(2048, 8, 8));
  EXPECT_THAT(shape("resnet-50", "layer4.2.add"), ElementsAre(2048, 7, 7));
  EXPECT_THAT(shape("cifar-quick", "9"), ElementsAre(64 * 4 * 4));
}

TEST(Zoo, every_layer_has_a_name_of_its_own_and_reads_what_was_computed_before) {
  for (const std::string& name : names()) {
    const Model model = describe(name);
    EXPECT_EQ(model.name, name);
    std::set<std::string> seen;
    std::set<std::size_t> read;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      EXPECT_TRUE(seen.insert(model.layers[i].name).second) << name << ": " << model.layers[i].name;
      for (const std::size_t value : model.layers[i].inputs) {
        EXPECT_LT(value, model.inputs.size() + i) << name << ": " << model.layers[i].name;
        read.insert(value);
      }
    }
    EXPECT_EQ(read.size(), model.inputs.size() + model.layers.size() - 1) << name << ": a value that nobody reads";
  }
}

TEST(Zoo, a_name_that_is_none_is_refused_with_those_there_are) {
  try {
    describe("vgg16");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), testing::StartsWith("vgg16: there is no such model (lenet, fcnet, cifar-quick, "));
  }
}

}  // namespace
}  // namespace shoal::nn::models
