// f16 and bf16: every value is read right, every result is the f32 result rounded once, to nearest with ties
// to even, on every target. The oracles are the compiler's own half type, and distances measured in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "shoal/core/reduce.h"
#include "shoal/core/seed.h"
#include "tests/core/every_target.h"

namespace shoal {
namespace {

using Bits = std::uint16_t;

struct Half {
  static constexpr DType type = DType::f16;
  static float value(Bits bits) {
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    return static_cast<float>(half);
  }
  static Bits rounded(float value) {
    if (std::isnan(value)) return 0x7E00;
    const auto half = static_cast<_Float16>(value);
    Bits bits;
    std::memcpy(&bits, &half, 2);
    return bits;
  }
};

struct Brain {
  static constexpr DType type = DType::bf16;
  static float from_word(std::uint32_t word) {
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
  static float value(Bits bits) { return from_word(std::uint32_t{bits} << 16); }
  static Bits rounded(float value) {
    if (std::isnan(value)) return 0x7FC0;
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    const auto inner = static_cast<Bits>(word >> 16);  // towards zero
    if (std::isinf(value) || (word & 0xFFFF) == 0) return inner;
    const auto outer = static_cast<Bits>(inner + 1);
    // What would follow the largest finite value counts as 2^128.
    const double outer_value = std::isinf(Brain::value(outer)) ? 0x1p128 : std::fabs(Brain::value(outer));
    const double below = std::fabs(double{value}) - std::fabs(Brain::value(inner));
    const double above = outer_value - std::fabs(double{value});
    if (below != above) return below < above ? inner : outer;
    return inner % 2 == 0 ? inner : outer;
  }
};

std::vector<Bits> every_value() {
  std::vector<Bits> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Bits>(i);
  return all;
}

std::vector<Bits> random_values(std::uint32_t site) {
  std::vector<Bits> values(65536);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<Bits>(random_words(7, 0, static_cast<std::uint32_t>(i), site)[0]);
  }
  return values;
}

template <class Kind>
void expect_every_pair_rounded_once(ReduceOp op, std::uint32_t site) {
  const std::vector<Bits> a = every_value(), b = random_values(site);
  std::vector<Bits> into = a;
  reduce(Kind::type, op, into.data(), b.data(), into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    const float left = Kind::value(a[i]), right = Kind::value(b[i]);
    const float exact = op == ReduceOp::sum ? left + right : left * right;
    ASSERT_EQ(into[i], Kind::rounded(exact)) << std::hex << a[i] << " " << name(op) << " " << b[i];
  }
}

template <class Kind>
void expect_rounded_once() {
  for (std::uint32_t site = 0; site < 8; ++site) {
    expect_every_pair_rounded_once<Kind>(ReduceOp::sum, site);
    expect_every_pair_rounded_once<Kind>(ReduceOp::product, site);
  }
}

// Three sources: the sum of the first two is not rounded to 16 bits before the third is added.
template <class Kind>
void expect_accumulated_in_f32() {
  const std::vector<Bits> a = every_value(), b = random_values(21), c = random_values(22);
  std::vector<Bits> into(a.size());
  const std::vector<const void*> sources = {a.data(), b.data(), c.data()};
  fold(Kind::type, ReduceOp::sum, into.data(), sources, into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    ASSERT_EQ(into[i], Kind::rounded(Kind::value(a[i]) + Kind::value(b[i]) + Kind::value(c[i]))) << i;
  }
}

template <class Kind>
void expect_order_kept() {
  const std::vector<Bits> a = every_value(), b = random_values(23);
  std::vector<Bits> least = a, most = a;
  reduce(Kind::type, ReduceOp::min, least.data(), b.data(), a.size());
  reduce(Kind::type, ReduceOp::max, most.data(), b.data(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float left = Kind::value(a[i]), right = Kind::value(b[i]);
    const bool nan = std::isnan(left) || std::isnan(right);
    ASSERT_EQ(least[i], nan ? Kind::rounded(NAN) : left <= right ? a[i] : b[i]) << i;
    ASSERT_EQ(most[i], nan ? Kind::rounded(NAN) : left >= right ? a[i] : b[i]) << i;
  }
}

template <class Kind>
void expect_divided_and_scaled() {
  const std::vector<Bits> from = every_value();
  std::vector<Bits> divided = from, scaled(from.size());
  divide(Kind::type, divided.data(), 3, divided.size());
  scale(Kind::type, scaled.data(), from.data(), 0.1, from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(divided[i], Kind::rounded(Kind::value(from[i]) / 3.0f)) << i;
    ASSERT_EQ(scaled[i], Kind::rounded(Kind::value(from[i]) * 0.1f)) << i;
  }
}

using Rounding = EveryTarget;

TEST_P(Rounding, f16_rounds_once) { expect_rounded_once<Half>(); }
TEST_P(Rounding, bf16_rounds_once) { expect_rounded_once<Brain>(); }
TEST_P(Rounding, f16_accumulates_in_f32) { expect_accumulated_in_f32<Half>(); }
TEST_P(Rounding, bf16_accumulates_in_f32) { expect_accumulated_in_f32<Brain>(); }
TEST_P(Rounding, f16_min_and_max_keep_the_order_and_nan) { expect_order_kept<Half>(); }
TEST_P(Rounding, bf16_min_and_max_keep_the_order_and_nan) { expect_order_kept<Brain>(); }
TEST_P(Rounding, f16_divides_and_scales_in_f32) { expect_divided_and_scaled<Half>(); }
TEST_P(Rounding, bf16_divides_and_scales_in_f32) { expect_divided_and_scaled<Brain>(); }

INSTANTIATE_TEST_SUITE_P(Targets, Rounding, testing::ValuesIn(targets_here()), target_name);

}  // namespace
}  // namespace shoal
