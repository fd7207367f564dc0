// Poseidon's rule against published layers (research/sync.md 1.2): K, members, layer, choice.
#include "shoal/factor/factor.h"

#include <gtest/gtest.h>

namespace shoal::factor {
namespace {

TEST(Factor, poseidons_rule_chooses_as_published) {
  EXPECT_TRUE(fewer_numbers({4096, 4096}, 32, 8));
  EXPECT_TRUE(fewer_numbers({25088, 4096}, 32, 16));   // VGG fc6
  EXPECT_TRUE(fewer_numbers({4096, 21841}, 32, 32));   // VGG19-22K fc8
  EXPECT_FALSE(fewer_numbers({1024, 1000}, 128, 16));  // GoogLeNet: by servers
  EXPECT_TRUE(fewer_numbers({2048, 1000}, 32, 8));     // ResNet-152
  EXPECT_TRUE(fewer_numbers({2048, 1000}, 32, 32));    // Inception-V3
}

// K P = 2 M N / (M + N): for a square layer a global batch as large as a side.
TEST(Factor, poseidons_rule_turns_at_the_break_even) {
  EXPECT_TRUE(fewer_numbers({1024, 1024}, 256, 4));
  EXPECT_FALSE(fewer_numbers({1024, 1024}, 257, 4));
}

TEST(Factor, the_others_rows_are_what_is_multiplied_besides) {
  EXPECT_EQ(extra_operations({10, 20}, 3, 4), 2.0 * 3 * 3 * 10 * 20);
  EXPECT_EQ(extra_operations({10, 20}, 3, 1), 0);
}

}  // namespace
}  // namespace shoal::factor
