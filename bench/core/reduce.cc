// Reductions of slices against the loop that a compiler vectorises by itself (-O3, without flags for this
// CPU).
//   build/release/bench/core/bench_core_reduce --benchmark_repetitions=5
//   --benchmark_enable_random_interleaving=true
// bytes_per_second counts what is read and written: two reads and a write an element, for N sources N reads
// and a write. Each case checks its sum against the loop's before it is timed.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "shoal/core/reduce.h"
#include "shoal/core/seed.h"

namespace {

using shoal::DType;
using shoal::ReduceOp;

// Small integers: their sums are exact in every type.
template <class T>
std::vector<T> small_integers(std::size_t count, std::uint32_t site) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(shoal::random_words(1, 0, static_cast<std::uint32_t>(i), site)[0] % 8);
  }
  return values;
}

template <class T>
void plain_sum(T* into, const T* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<T>(into[i] + from[i]);
}

// bf16 as a loop over its bits, rounding to nearest even.
struct Brain {
  std::uint16_t bits = 0;
  Brain() = default;
  explicit Brain(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    bits = static_cast<std::uint16_t>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
  }
  explicit Brain(std::uint32_t integer) : Brain(static_cast<float>(integer)) {}
  operator float() const {
    const std::uint32_t word = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
};

void count_bytes(benchmark::State& state, std::int64_t streams) {
  state.SetBytesProcessed(state.iterations() * state.range(0) * streams);
}

template <class T>
void plain(benchmark::State& state) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / sizeof(T);
  std::vector<T> into(count), from = small_integers<T>(count, 1);
  for (auto _ : state) {
    plain_sum(into.data(), from.data(), count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3);
}

template <class T, DType type>
void shoal_sum(benchmark::State& state) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / sizeof(T);
  std::vector<T> into = small_integers<T>(count, 2), from = small_integers<T>(count, 1), expected = into;
  plain_sum(expected.data(), from.data(), count);
  shoal::reduce(type, ReduceOp::sum, into.data(), from.data(), count);
  if (std::memcmp(into.data(), expected.data(), count * sizeof(T)) != 0) {
    state.SkipWithError("the sum differs from the loop's");
    return;
  }
  std::memset(static_cast<void*>(into.data()), 0, count * sizeof(T));  // as the loop starts
  for (auto _ : state) {
    shoal::reduce(type, ReduceOp::sum, into.data(), from.data(), count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3);
}

// Four members' slices: one pass over memory against three.
void plain_fold4(benchmark::State& state) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  std::vector<std::vector<float>> from;
  for (std::uint32_t member = 0; member < 4; ++member) from.push_back(small_integers<float>(count, member));
  std::vector<float> into(count);
  for (auto _ : state) {
    std::memcpy(into.data(), from[0].data(), count * sizeof(float));
    for (std::size_t member = 1; member < 4; ++member) plain_sum(into.data(), from[member].data(), count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 5);
}

void shoal_fold4(benchmark::State& state) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  std::vector<std::vector<float>> from;
  for (std::uint32_t member = 0; member < 4; ++member) from.push_back(small_integers<float>(count, member));
  const std::vector<const void*> sources = {from[0].data(), from[1].data(), from[2].data(), from[3].data()};
  std::vector<float> into(count);
  shoal::fold(DType::f32, ReduceOp::sum, into.data(), sources, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (into[i] != from[0][i] + from[1][i] + from[2][i] + from[3][i]) {
      state.SkipWithError("the sum differs from the loop's");
      return;
    }
  }
  for (auto _ : state) {
    shoal::fold(DType::f32, ReduceOp::sum, into.data(), sources, count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 5);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->RangeMultiplier(16)->Range(16 << 10, 64 << 20);
}

BENCHMARK(plain<float>)->Apply(sizes);
BENCHMARK(shoal_sum<float, DType::f32>)->Apply(sizes);
BENCHMARK(plain<double>)->Apply(sizes);
BENCHMARK(shoal_sum<double, DType::f64>)->Apply(sizes);
BENCHMARK(plain<std::int8_t>)->Apply(sizes);
BENCHMARK(shoal_sum<std::int8_t, DType::i8>)->Apply(sizes);
BENCHMARK(plain<Brain>)->Apply(sizes);
BENCHMARK(shoal_sum<Brain, DType::bf16>)->Apply(sizes);
BENCHMARK(plain<_Float16>)->Apply(sizes);
BENCHMARK(shoal_sum<_Float16, DType::f16>)->Apply(sizes);
BENCHMARK(plain_fold4)->Apply(sizes);
BENCHMARK(shoal_fold4)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
