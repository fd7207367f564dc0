// Goal: a model's file says all that a plan needs, survives being written, and a mistake in it is one line that names the key.
#include "shoal/exchange/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

// A convolution, and a layer of 100 x 50 that sees four rows a sample.
Model small() {
  Model model{"small", {}};
  model.layers.push_back({"conv", LayerKind::conv, {{"conv.weight", 30}, {"conv.bias", 2}}, 6000, 300, 200, 1});
  model.layers.push_back({"relu", LayerKind::other, {}, 0, 200, 200, 1});
  model.layers.push_back({"fc", LayerKind::fc, {{"fc.weight", 5000}, {"fc.bias", 50}}, 40'000, 400, 200, 4});
  return model;
}

TEST(Model, counts_add_up) {
  EXPECT_EQ(small().parameters(), 5082u);
  EXPECT_EQ(small().bytes(), 4 * 5082u);
  EXPECT_EQ(small().forward_flops(), 46'000);
}

TEST(Model, survives_its_file) {
  const auto text = to_json(small());
  EXPECT_EQ(to_json(model_from_json(text, "m.json")), text);
}

// 46 kFLOP at 1 MFLOP/s and 10 samples: 0.46 s forward, 0.92 backward. Backward begins at the last layer.
TEST(Model, is_measured_as_a_run_would_measure_it) {
  const auto run = as_measured(small(), 10, 1e6);
  EXPECT_DOUBLE_EQ(run.compute.forward_seconds, 0.46);
  EXPECT_DOUBLE_EQ(run.compute.backward_seconds, 0.92);
  ASSERT_EQ(run.tensors.size(), 4u);
  EXPECT_EQ(run.tensors[0].forward_at, 0);
  EXPECT_DOUBLE_EQ(run.tensors[0].backward_at, 0.92);
  EXPECT_DOUBLE_EQ(run.tensors[2].forward_at, 0.06);
  EXPECT_DOUBLE_EQ(run.tensors[2].backward_at, 0.8);
  EXPECT_EQ(run.tensors[2].rows, 0u) << "a small layer is packed with others";
  EXPECT_EQ(run.tensors[0].rows, 0u) << "a convolution has no factors";
  auto model = small();
  model.layers[2].parameters[0].count = 100'000;
  const auto wide = as_measured(model, 10, 1e6);
  EXPECT_EQ(wide.tensors[2].rows, 40u);
  EXPECT_EQ(wide.tensors[2].outputs, 50u);
  EXPECT_EQ(wide.tensors[2].layer().inputs, 2000u);
  EXPECT_EQ(wide.tensors[3].rows, 0u) << "a bias has no factors";
}

// A table of 50 words in 8 numbers each, six words a sample: ten samples touch 50 rows at most, five no more than 30.
TEST(Model, a_table_has_the_rows_that_are_looked_up) {
  auto model = small();
  model.layers.insert(model.layers.begin(), {"embed", LayerKind::embedding, {{"embed.weight", 400}}, 0, 6, 48, 6});
  for (const auto& [samples, touched] : {std::pair(10, 50u), std::pair(5, 30u)}) {
    const auto table = as_measured(model, samples, 1e6).tensors.front();
    EXPECT_EQ(table.width, 8u);
    EXPECT_EQ(table.touched, touched);
  }
  EXPECT_EQ(model_from_json(to_json(model), "m.json").layers.front().rows, 6u);
}

std::string refusal_of_model(const std::string& from, const std::string& to) {
  auto text = to_json(small());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  try {
    model_from_json(text.replace(at, from.size(), to), "m.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Model, a_mistake_is_one_line_that_names_the_key) {
  EXPECT_EQ(refusal_of_model("\"version\": 1", "\"version\": 2"), "m.json: model.version is not 1 (docs/plans.md describes a model's file)");
  EXPECT_THAT(refusal_of_model("\"kind\": \"fc\"", "\"kind\": \"gru\""),
              testing::HasSubstr("model.layers[2].kind is \"gru\", not fc, conv, embedding or other"));
  EXPECT_THAT(refusal_of_model("\"count\": 5000", "\"count\": 5001"),
              testing::HasSubstr("model.layers[2].outputs / rows does not divide the first parameter"));
  EXPECT_THAT(refusal_of_model("\"count\": 30", "\"count\": 0"), testing::HasSubstr("model.layers[0].parameters[0].count is 0"));
  EXPECT_THAT(refusal_of_model("\"type\": \"f32\"", "\"type\": \"f33\""),
              testing::StartsWith("m.json: model.layers[0].parameters[0].type is \"f33\": no element type is called"));
  EXPECT_THAT(refusal_of_model("\"rows\": 4", "\"rows\": 0"), testing::HasSubstr("model.layers[2].rows is 0"));
  EXPECT_THAT(refusal_of_model("\"forward_flops\": 6000.0", "\"forward_flops\": -1"),
              testing::HasSubstr("model.layers[0].forward_flops is not a number >= 0"));
  const auto whole = to_json(small());
  for (std::size_t cut = 0; cut < whole.size() - 2; cut += 13) EXPECT_THROW(model_from_json(whole.substr(0, cut), "m.json"), Error) << cut;
  EXPECT_THROW(model_from_json(R"({"version": 1, "name": "none", "layers": []})", "m.json"), Error);
}

}  // namespace
}  // namespace shoal::exchange
