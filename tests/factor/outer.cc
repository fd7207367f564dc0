// Goal: sums of outer products with sparse factors are those of the dense ones, before and after their wire form; bytes that nobody wrote are
// refused.
#include "shoal/factor/outer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "shoal/core/error.h"

namespace shoal::factor {
namespace {

constexpr std::uint64_t kRows = 1000;

template <class T>
struct Drawn {
  Outer<T> outer;
  std::map<std::uint64_t, std::vector<T>> sums;  // by row, entry by entry in the order of k
};

template <class T>
Drawn<T> drawn(std::mt19937_64& random, std::size_t width, std::uint32_t vectors) {
  std::vector<std::uint64_t> rows(kRows);  // each that may be touched, in any order
  std::iota(rows.begin(), rows.end(), 0u);
  std::ranges::shuffle(rows, random);
  std::vector<std::size_t> place(kRows);
  for (std::size_t at = 0; at < kRows; ++at) place[rows[at]] = at;
  Drawn<T> drawn{Outer<T>(width, rows), {}};
  for (const std::uint64_t row : rows) drawn.sums[row].resize(width);
  std::normal_distribution<T> normal;
  for (std::uint32_t k = 0; k < vectors; ++k) {
    const auto vector = drawn.outer.new_vector();
    for (T& number : vector) number = normal(random);
    const std::vector<T> u(vector.begin(), vector.end());
    for (std::uint64_t row = random() % 50; row < kRows; row += 1 + random() % 100) {
      const auto coefficient = static_cast<float>(normal(random));
      drawn.outer.add(place[row], coefficient);
      auto& sum = drawn.sums[row];
      for (std::size_t j = 0; j < width; ++j) sum[j] += T{coefficient} * u[j];
    }
  }
  drawn.outer.seal();
  return drawn;
}

template <class T>
void expect_sums(const Outer<T>& outer, const Drawn<T>& drawn) {
  ASSERT_EQ(outer.rows().size(), drawn.sums.size());
  std::size_t at = 0;
  for (const auto& [row, sum] : drawn.sums) {
    EXPECT_EQ(outer.rows()[at], row);
    std::vector<T> gained(outer.width());
    outer.add_to(at++, gained);
    for (std::size_t j = 0; j < sum.size(); ++j) EXPECT_DOUBLE_EQ(gained[j], sum[j]);
  }
}

TEST(Outer, adds_what_dense_products_would_before_and_after_its_wire_form) {
  std::mt19937_64 random(1);
  for (const auto& [width, vectors] : {std::pair{1u, 1u}, {3u, 0u}, {105u, 50u}, {7u, 256u}, {2u, 257u}, {1u, 65537u}}) {
    SCOPED_TRACE(vectors);
    const auto of_floats = drawn<float>(random, width, vectors);
    expect_sums(of_floats.outer, of_floats);
    const auto of_doubles = drawn<double>(random, width, vectors % 1000);
    const Bytes wire = of_doubles.outer.write();
    const auto again = Outer<double>::read({wire.data(), wire.size()}, width, kRows);
    expect_sums(again, of_doubles);
    const Bytes twice = again.write();
    EXPECT_TRUE(std::equal(wire.begin(), wire.end(), twice.begin(), twice.end()));
  }
}

TEST(Outer, bytes_that_are_no_factors_are_refused) {
  std::mt19937_64 random(2);
  const auto some = drawn<float>(random, 5, 4);
  const Bytes wire = some.outer.write();
  const std::vector<std::byte> whole(wire.begin(), wire.end());
  const auto refused = [](std::span<const std::byte> bytes, std::size_t width = 5, std::uint64_t end = kRows) {
    try {
      (void)Outer<float>::read(bytes, width, end);
      return false;
    } catch (const Error& error) {
      return error.code() == Code::mismatch;
    }
  };
  EXPECT_FALSE(refused(whole));
  for (std::size_t length = 0; length < whole.size(); ++length) EXPECT_TRUE(refused(std::span(whole).first(length))) << length;
  auto longer = whole;
  longer.push_back({});
  EXPECT_TRUE(refused(longer));
  EXPECT_TRUE(refused(whole, 6));
  EXPECT_TRUE(refused(whole, 5, some.outer.rows().back()));
  for (std::size_t i = 0; i < 12; ++i) {  // the counts
    auto other = whole;
    other[i] ^= std::byte{0x40};
    EXPECT_TRUE(refused(other)) << i;
  }
}

TEST(Outer, a_number_that_is_not_finite_is_refused) {
  Outer<float> outer(2);
  outer.new_vector()[1] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(outer.seal(), Error);
  const std::uint64_t row = 3;
  Outer<float> other(2, {&row, 1});
  (void)other.new_vector();
  other.add(0, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THROW(other.seal(), Error);
}

}  // namespace
}  // namespace shoal::factor
