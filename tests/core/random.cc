// Secrets and names: long enough, of hexadecimal digits, never the same.
#include "shoal/core/random.h"

#include <gtest/gtest.h>

#include <set>

namespace shoal {
namespace {

TEST(Random, hex_has_two_digits_a_byte) {
  for (const std::size_t bytes : {0u, 1u, 8u, 32u}) {
    const std::string text = random_hex(bytes);
    EXPECT_EQ(text.size(), 2 * bytes);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
  }
}

TEST(Random, every_digit_comes_and_nothing_repeats) {
  const std::string long_text = random_hex(1000);  // that one digit is missing: 16 (15/16)^2000 < 1e-54
  EXPECT_EQ(std::set<char>(long_text.begin(), long_text.end()).size(), 16u);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_hex(16));
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace shoal
