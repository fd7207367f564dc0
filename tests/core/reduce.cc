// Every type and operation equals a loop over elements, bit for bit, on every target that this CPU has; for
// sizes around the vectors' own, at addresses without alignment; and nothing beyond the slice is written.
#include "shoal/core/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "tests/core/every_target.h"

namespace shoal {
namespace {

constexpr std::uint8_t kGuard = 0xA5;
const std::vector<std::size_t> kSizes = {0,  1,  2,  3,  7,   13,  15,  16,  17,  31,   32,   33,
                                         61, 63, 64, 65, 127, 128, 129, 257, 509, 1023, 1024, 1025};

template <class T>
T oracle(ReduceOp op, T so_far, T next) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case ReduceOp::product:
        return so_far * next;
      case ReduceOp::min:
        return std::isnan(so_far) || so_far <= next ? so_far : next;
      case ReduceOp::max:
        return std::isnan(so_far) || so_far >= next ? so_far : next;
      default:
        return so_far + next;
    }
  } else {
    const auto a = static_cast<std::uint64_t>(so_far), b = static_cast<std::uint64_t>(next);
    switch (op) {
      case ReduceOp::product:
        return static_cast<T>(a * b);
      case ReduceOp::min:
        return so_far < next ? so_far : next;
      case ReduceOp::max:
        return so_far > next ? so_far : next;
      case ReduceOp::bit_and:
        return static_cast<T>(a & b);
      case ReduceOp::bit_or:
        return static_cast<T>(a | b);
      case ReduceOp::bit_xor:
        return static_cast<T>(a ^ b);
      default:
        return static_cast<T>(a + b);
    }
  }
}

// Equal bits; of NaNs only that both are one (which NaN comes out of a sum differs between processors).
template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Any bit pattern, and often one of the values at which comparisons and sums go wrong.
template <class T>
std::vector<T> some_values(std::size_t count, std::uint32_t site) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto words = random_words(20240607, 0, static_cast<std::uint32_t>(i), site);
    std::memcpy(&values[i], words.data(), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      const T special[] = {0,
                           -T(0),
                           Limits::quiet_NaN(),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::denorm_min(),
                           Limits::max(),
                           1};
      if (words[3] % 4 == 0) values[i] = special[words[2] % 8];
      if (words[3] % 4 == 1) values[i] = static_cast<T>(static_cast<int>(words[2] % 2000) - 1000);
    } else {
      if (words[3] % 8 == 0) values[i] = std::numeric_limits<T>::min();
      if (words[3] % 8 == 1) values[i] = std::numeric_limits<T>::max();
    }
  }
  return values;
}

// Bytes at an odd address with guards on both sides.
class Slice {
 public:
  template <class T>
  Slice(const std::vector<T>& values, std::size_t offset)
      : offset_(offset), bytes_(values.size() * sizeof(T)), memory_(offset + bytes_ + 64, kGuard) {
    if (bytes_ > 0) std::memcpy(data(), values.data(), bytes_);
  }
  void* data() { return memory_.data() + offset_; }
  template <class T>
  T element(std::size_t i) const {
    T value;
    std::memcpy(&value, memory_.data() + offset_ + i * sizeof(T), sizeof(T));
    return value;
  }
  bool guards_intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < offset_ || i >= offset_ + bytes_) && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  std::size_t offset_, bytes_;
  std::vector<std::uint8_t> memory_;
};

template <class T>
void expect_fold_equals_loop(DType type, ReduceOp op, std::size_t members, std::size_t size,
                             std::size_t offset) {
  std::vector<std::vector<T>> values;
  std::vector<Slice> slices;
  for (std::size_t member = 0; member < members; ++member) {
    values.push_back(some_values<T>(size, static_cast<std::uint32_t>(member)));
    slices.emplace_back(values.back(), offset);
  }
  std::vector<const void*> sources;
  for (Slice& slice : slices) sources.push_back(slice.data());
  // Into the last source: what it held is still an operand.
  Slice& into = slices.back();
  fold(type, op, into.data(), sources, size);
  ASSERT_TRUE(into.guards_intact());
  for (std::size_t i = 0; i < size; ++i) {
    T expected = values[0][i];
    for (std::size_t member = 1; member < members; ++member)
      expected = oracle(op, expected, values[member][i]);
    ASSERT_TRUE(same(into.element<T>(i), expected))
        << name(type) << " " << name(op) << ", " << members << " sources of " << size << ", element " << i
        << ": " << +into.element<T>(i) << " instead of " << +expected;
  }
}

template <class T>
void expect_all_folds_equal_loops(DType type) {
  for (int number = 0; number <= static_cast<int>(ReduceOp::bit_xor); ++number) {
    const auto op = static_cast<ReduceOp>(number);
    if (std::is_floating_point_v<T> && op >= ReduceOp::bit_and) continue;
    for (std::size_t size : kSizes) {
      for (std::size_t members : {1, 2, 5}) {
        for (std::size_t offset : {0, 1}) {
          expect_fold_equals_loop<T>(type, op, members, size, offset);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

using Reduce = EveryTarget;

TEST_P(Reduce, f32_equals_a_loop) { expect_all_folds_equal_loops<float>(DType::f32); }
TEST_P(Reduce, f64_equals_a_loop) { expect_all_folds_equal_loops<double>(DType::f64); }
TEST_P(Reduce, i8_equals_a_loop) { expect_all_folds_equal_loops<std::int8_t>(DType::i8); }
TEST_P(Reduce, u8_equals_a_loop) { expect_all_folds_equal_loops<std::uint8_t>(DType::u8); }
TEST_P(Reduce, i32_equals_a_loop) { expect_all_folds_equal_loops<std::int32_t>(DType::i32); }
TEST_P(Reduce, i64_equals_a_loop) { expect_all_folds_equal_loops<std::int64_t>(DType::i64); }

TEST_P(Reduce, pairwise_is_a_fold_of_two) {
  std::vector<float> into = some_values<float>(1021, 1), from = some_values<float>(1021, 2);
  const std::vector<float> before = into;
  reduce(DType::f32, ReduceOp::sum, into.data(), from.data(), into.size());
  for (std::size_t i = 0; i < into.size(); ++i) ASSERT_TRUE(same(into[i], before[i] + from[i])) << i;
}

TEST_P(Reduce, booleans_add_as_or_and_multiply_as_and) {
  const std::vector<std::uint8_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  const auto result = [&](ReduceOp op) {
    std::vector<std::uint8_t> into = a;
    reduce(DType::boolean, op, into.data(), b.data(), into.size());
    return into;
  };
  const std::vector<std::uint8_t> any = {0, 1, 1, 1}, all = {0, 0, 0, 1}, one = {0, 1, 1, 0};
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::bit_or}) EXPECT_EQ(result(op), any) << name(op);
  for (ReduceOp op : {ReduceOp::product, ReduceOp::min, ReduceOp::bit_and})
    EXPECT_EQ(result(op), all) << name(op);
  EXPECT_EQ(result(ReduceOp::bit_xor), one);
}

TEST_P(Reduce, scales_and_divides_floats_as_a_loop_does) {
  for (std::size_t size : kSizes) {
    const std::vector<float> from = some_values<float>(size, 5);
    std::vector<float> scaled(size), divided = from;
    scale(DType::f32, scaled.data(), from.data(), 0.3, size);
    divide(DType::f32, divided.data(), 3, size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_TRUE(same(scaled[i], from[i] * 0.3f)) << i;
      ASSERT_TRUE(same(divided[i], from[i] / 3.0f)) << i;
    }
    const std::vector<double> from64 = some_values<double>(size, 6);
    std::vector<double> scaled64 = from64, divided64 = from64;
    scale(DType::f64, scaled64.data(), scaled64.data(), 0.3, size);
    divide(DType::f64, divided64.data(), 3, size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_TRUE(same(scaled64[i], from64[i] * 0.3)) << i;
      ASSERT_TRUE(same(divided64[i], from64[i] / 3.0)) << i;
    }
  }
}

TEST(ReduceIntegers, divide_towards_zero) {
  std::vector<std::int32_t> values = {7, -7, 6, -6, 0};
  divide(DType::i32, values.data(), 3, values.size());
  EXPECT_EQ(values, (std::vector<std::int32_t>{2, -2, 2, -2, 0}));
  std::vector<std::int64_t> lowest = {std::numeric_limits<std::int64_t>::min(), 5};
  divide(DType::i64, lowest.data(), -1, lowest.size());
  EXPECT_EQ(lowest, (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -5}));
}

TEST(ReduceIntegers, scale_to_the_nearest_and_stop_at_the_ends) {
  std::vector<std::int8_t> values = {10, 11, -11, 127, -128};
  scale(DType::i8, values.data(), values.data(), 1.5, values.size());
  EXPECT_EQ(values, (std::vector<std::int8_t>{15, 16, -16, 127, -128}));
  std::vector<std::int64_t> large = {std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()};
  const std::vector<std::int64_t> ends = large;
  scale(DType::i64, large.data(), large.data(), 2, large.size());
  EXPECT_EQ(large, ends);
}

TEST(ReduceRefuses, what_has_no_meaning) {
  std::vector<double> memory(4);
  const auto refusal = [&](auto call) {
    try {
      call(memory.data());
    } catch (const Error& error) {
      return std::string(name(error.code())) + ": " + error.what();
    }
    return std::string("accepted");
  };
  for (DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (ReduceOp op : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}) {
      EXPECT_EQ(
          refusal([&](void* data) { reduce(type, op, data, data, 1); }),
          std::string("unsupported: ") + name(op) + " is not defined for elements of type " + name(type));
    }
  }
  EXPECT_EQ(refusal([](void* data) { reduce(DType::boolean, ReduceOp::average, data, data, 1); }),
            "unsupported: average is not defined for elements of type bool");
  EXPECT_EQ(refusal([](void* data) { divide(DType::boolean, data, 2, 1); }),
            "unsupported: dividing is not defined for elements of type bool");
  EXPECT_EQ(refusal([](void* data) { divide(DType::i32, data, 0.25, 1); }),
            "invalid_argument: integers cannot be divided by 0.250000");
}

INSTANTIATE_TEST_SUITE_P(Targets, Reduce, testing::ValuesIn(targets_here()), target_name);

}  // namespace
}  // namespace shoal
