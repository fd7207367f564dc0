// Goal: the balance equations of Das et al., worked by hand (research/sync.md 4.1).
#include "shoal/exchange/balance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shoal::exchange {
namespace {

Model one_layer(LayerKind kind, std::uint64_t weights, std::uint64_t inputs, double flops) {
  return {"one", {{"layer", kind, {{"layer.weight", weights}}, flops, inputs, 1, 1}}};
}

// A convolution of 64 to 128 channels, 3 x 3, on 56 x 56: its operations per byte are 1.5 x 56 x 56 a sample, whatever channels and kernel.
TEST(Balance, a_convolution_has_operations_per_byte_by_its_output_alone) {
  const double pixels = 56 * 56;
  for (const std::uint64_t kernel : {1u, 3u, 5u}) {
    const std::uint64_t weights = 64 * 128 * kernel * kernel;
    const auto b = balance(one_layer(LayerKind::conv, weights, 64 * 56 * 56, 2 * static_cast<double>(weights) * pixels), 16, 64, 1).front();
    EXPECT_DOUBLE_EQ(b.flops_a_byte, 1.5 * pixels * 4);
    EXPECT_DOUBLE_EQ(b.data, 4.0 * static_cast<double>(weights));
    EXPECT_DOUBLE_EQ(b.model, 8.0 * 64 * 56 * 56 * 64);
    EXPECT_STREQ(b.share(), "data");
  }
}

// Model parallel where N_out (2 - overlap) > 2 x batch.
TEST(Balance, a_fully_connected_layer_is_shared_where_the_batch_is_small) {
  const auto share = [](double batch, double overlap) {
    const auto all = balance(one_layer(LayerKind::fc, 4096 * 4096, 4096, 2 * 4096.0 * 4096.0), 2, batch, overlap);
    return std::string(all.front().share());
  };
  EXPECT_EQ(share(2047, 1), "model");
  EXPECT_EQ(share(2049, 1), "data");
  EXPECT_EQ(share(4095, 0), "model");
  EXPECT_EQ(share(4097, 0), "data");
}

// The worked example: 64 members, 256 samples, 4096 outputs: G* = 2 without overlap, 2.8 with.
TEST(Balance, groups_are_the_worked_example) {
  const auto model = one_layer(LayerKind::fc, 4096 * 4096, 4096, 2 * 4096.0 * 4096.0);
  const auto without = balance(model, 64, 256, 0).front(), with = balance(model, 64, 256, 1).front();
  EXPECT_DOUBLE_EQ(without.best_groups, 2);
  EXPECT_DOUBLE_EQ(with.best_groups, std::sqrt(8.0));
  EXPECT_EQ(with.groups, 2u);
  EXPECT_STREQ(with.share(), "hybrid");
  EXPECT_DOUBLE_EQ(with.hybrid, 8.0 * 4096 * 256 / 2 + 4.0 * 4096 * 4096 * 2 / 64);
  // Of one group nobody has another to exchange weights with: without overlap that is worth as much as two groups are.
  EXPECT_DOUBLE_EQ(without.hybrid, 8.0 * 4096 * 256 / 2 + 8.0 * 4096 * 4096 * 2 / 64);
  EXPECT_DOUBLE_EQ(without.hybrid, without.model);
}

TEST(Balance, the_best_number_of_groups_is_the_best_divisor) {
  for (const double batch : {1.0, 16.0, 300.0, 5000.0}) {
    const auto b = balance(one_layer(LayerKind::fc, 4096 * 1024, 4096, 1), 24, batch, 0.5).front();
    for (std::uint32_t groups = 1; groups <= 24; ++groups) {
      if (24 % groups != 0) continue;
      const double inside = groups < 24 ? b.model / groups : 0, across = groups > 1 ? b.data * groups / 24 : 0;
      EXPECT_LE(b.hybrid, inside + across) << batch << ' ' << groups;
    }
  }
}

TEST(Balance, one_member_moves_nothing_and_layers_without_weights_take_no_part) {
  auto model = one_layer(LayerKind::fc, 100, 10, 200);
  model.layers.push_back({"norm", LayerKind::other, {{"norm.weight", 10}}, 0, 10, 10, 1});
  model.layers.push_back({"pool", LayerKind::conv, {}, 0, 10, 10, 1});
  const auto all = balance(model, 1, 32, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().hybrid, 0);
}

}  // namespace
}  // namespace shoal::exchange
