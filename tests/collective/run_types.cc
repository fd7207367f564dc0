// Every element type goes through every program exactly: whole numbers up to the ends of the type's range, both 16-bit
// floats as far as they are exact, and truth values, of which a sum is "or" and a product is "and".
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "shoal/collective/run.h"
#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

// A 16-bit float in memory, a float in sums: the runner too accumulates in f32.
template <class Format>
class Short {
 public:
  Short() = default;
  explicit Short(float value) : bits_(Format::bits(value)) {}
  operator float() const { return Format::value(bits_); }

 private:
  std::uint16_t bits_ = 0;
};
struct Half {
  static std::uint16_t bits(float value) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)); }
  static float value(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};
struct Brain {  // only values that it holds exactly
  static std::uint16_t bits(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }
  static float value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

constexpr std::uint32_t kMostRanks = 5;

// `add(contributions in rank order, chunk)` is the oracle.
template <class T, class Value, class Add>
void expect_exact(const Builder& builder, DType type, Value value, Add add, ReduceOp op = ReduceOp::sum) {
  for (std::uint32_t ranks : {1u, 2u, 3u, kMostRanks}) {
    SCOPED_TRACE(std::string(name(type)) + ", " + name(op) + ", ranks " + std::to_string(ranks));
    const Verified verified = verify(build(builder.collective, builder.name, ranks));
    ScriptedGroup group(ranks, {.seed = ranks, .frame = 512, .eager = 1024});
    Exercise<T> exercise(verified.program(), 1001, value);
    collective::Run run;
    run.type = type;
    run.op = op;
    run.slice_bytes = 128;
    run.operation = 7;
    for (const auto& runner : group.runners) exercise.start(*runner, verified, run);
    EXPECT_TRUE(group.job.run());
    exercise.expect_right(add);
  }
}

// Whole numbers whose sum over all members still fits: up to a kMostRanks-th of the range on both sides.
template <class T>
T up_to_the_ends(std::uint32_t rank, std::uint32_t chunk, std::uint64_t k) {
  constexpr T highest = std::numeric_limits<T>::max() / T{kMostRanks}, lowest = std::numeric_limits<T>::min() / T{kMostRanks};
  const auto words = random_words(5, rank, chunk, static_cast<std::uint32_t>(k));
  switch (words[0] % 4) {
    case 0: return highest;
    case 1: return lowest;
    default: return static_cast<T>(static_cast<T>(words[1]) / T{kMostRanks});
  }
}

std::uint8_t truth(std::uint32_t rank, std::uint32_t chunk, std::uint64_t k) { return (rank + chunk + k) % 3 == 0; }

class EveryProgram : public testing::TestWithParam<Builder> {};

TEST_P(EveryProgram, moves_and_adds_whole_numbers_up_to_the_ends_of_their_range) {
  expect_exact<std::int8_t>(GetParam(), DType::i8, up_to_the_ends<std::int8_t>, sum_in_rank_order);
  expect_exact<std::uint8_t>(GetParam(), DType::u8, up_to_the_ends<std::uint8_t>, sum_in_rank_order);
  expect_exact<std::int32_t>(GetParam(), DType::i32, up_to_the_ends<std::int32_t>, sum_in_rank_order);
  expect_exact<std::int64_t>(GetParam(), DType::i64, up_to_the_ends<std::int64_t>, sum_in_rank_order);
}

// Sums of up to five numbers of at most six bits: exact in f16 (11 bits) and in bf16 (8 bits).
TEST_P(EveryProgram, moves_and_adds_sixteen_bit_floats) {
  const auto number = [](std::uint32_t rank, std::uint32_t chunk, std::uint64_t k) {
    return static_cast<float>(small_number(rank, chunk, k)) * 4;
  };
  expect_exact<Short<Half>>(GetParam(), DType::f16, number, sum_in_rank_order);
  expect_exact<Short<Brain>>(GetParam(), DType::bf16, number, sum_in_rank_order);
}

TEST_P(EveryProgram, moves_truth_values_and_adds_them_as_or_and_and) {
  const auto any = [](const auto& given, std::uint32_t) {
    return static_cast<std::uint8_t>(std::any_of(given.begin(), given.end(), [](auto one) { return one != 0; }));
  };
  const auto every = [](const auto& given, std::uint32_t) {
    return static_cast<std::uint8_t>(std::all_of(given.begin(), given.end(), [](auto one) { return one != 0; }));
  };
  expect_exact<std::uint8_t>(GetParam(), DType::boolean, truth, any);
  if (GetParam().collective == Collective::all_reduce) {
    expect_exact<std::uint8_t>(GetParam(), DType::boolean, truth, every, ReduceOp::product);
  }
}

INSTANTIATE_TEST_SUITE_P(RunTypes, EveryProgram, testing::ValuesIn(all_builders()), title_of);

}  // namespace
}  // namespace shoal::collective
