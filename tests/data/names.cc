// Goal: a name has one number, numbers are given in the order in which names come. Oracle: std::map.
#include "shoal/data/names.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <span>

#include "shoal/core/fnv.h"

namespace shoal::data {
namespace {

TEST(Names, have_one_number_each) {
  std::mt19937_64 random(5);
  std::map<std::string, std::uint32_t> expected;
  Names names;
  for (int i = 0; i < 200'000; ++i) {
    std::string name = std::to_string(random() % 30'000);
    if (i % 3 == 0) name += std::string(random() % 20, 'x');
    if (i % 1001 == 0) name.clear();
    const auto [at, is_new] = expected.try_emplace(name, static_cast<std::uint32_t>(expected.size()));
    ASSERT_EQ(names.number(name), at->second);
  }
  ASSERT_EQ(names.size(), expected.size());
  for (const auto& [name, number] : expected) {
    EXPECT_EQ(names[number], name);
    EXPECT_EQ(names.find(name), number);
  }
  EXPECT_EQ(names.find("nobody"), std::nullopt);
}

TEST(Names, differ_by_a_letter_or_a_zero) {
  Names names;
  EXPECT_EQ(names.find("7"), std::nullopt);
  EXPECT_EQ(names.number("7"), 0u);
  EXPECT_EQ(names.number("07"), 1u);
  EXPECT_EQ(names.number("7 "), 2u);
  EXPECT_EQ(names.number("12345678"), 3u);
  EXPECT_EQ(names.number("123456780"), 4u);
  EXPECT_EQ(names.number({"\0"
                          "7",
                          2}),
            5u);
  EXPECT_EQ(names.number({"7\0", 2}), 6u);
  EXPECT_EQ(names.number("7"), 0u);
}

// The reference value of FNV-1a for "a" is its authors'.
TEST(Names, a_digest_is_that_of_the_lines_in_their_order) {
  const auto digest = [](std::initializer_list<const char*> all) {
    Names names;
    for (const char* const name : all) names.number(name);
    return names.digest();
  };
  Fnv1a letter, lines;
  letter.add_bytes(std::as_bytes(std::span("a", 1)));
  EXPECT_EQ(letter.value(), 0xaf63dc4c8601ec8cu);
  lines.add_bytes(std::as_bytes(std::span("a\nbc\n", 5)));
  EXPECT_EQ(digest({"a", "bc"}), lines.value());
  EXPECT_NE(digest({"bc", "a"}), lines.value());
  EXPECT_NE(digest({"ab", "c"}), lines.value());
}

}  // namespace
}  // namespace shoal::data
