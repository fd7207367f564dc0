// Random numbers are the published Philox4x32-10, keyed by (seed, step, sample, site).
#include "shoal/core/seed.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that come with the paper's own code (counter and key all zero, all one, digits of pi).
TEST(Seed, gives_the_published_answers) {
  EXPECT_EQ(random_words(0, 0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(random_words(~0ull, ~0ull, ~0u, ~0u), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(random_words(0x299f31d0'a4093822, 0x85a308d3'243f6a88, 0x13198a2e, 0x03707344),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Seed, uniform_is_the_upper_53_of_the_first_64_bits) {
  const std::uint64_t bits = 0xe169c58d'6627e8d5 >> 11;
  EXPECT_EQ(uniform(0, 0, 0, 0), static_cast<double>(bits) / 9007199254740992.0);
}

TEST(Seed, uniform_stays_in_its_interval_and_fills_it) {
  double sum = 0;
  for (std::uint32_t sample = 0; sample < 10000; ++sample) {
    const double u = uniform(1, 2, sample, 3);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);  // seven standard errors; the numbers are fixed
}

TEST(Seed, every_part_of_the_key_matters) {
  const Words base = random_words(1, 2, 3, 4);
  EXPECT_NE(random_words(5, 2, 3, 4), base);
  EXPECT_NE(random_words(1, 5, 3, 4), base);
  EXPECT_NE(random_words(1, 2, 5, 4), base);
  EXPECT_NE(random_words(1, 2, 3, 5), base);
}

}  // namespace
}  // namespace shoal
