// Gradients for tests: drawn from the normal distribution, the same of each seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace shoal::exchange {

inline std::vector<float> normal_numbers(std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (auto& v : numbers) v = normal(random);
  return numbers;
}

}  // namespace shoal::exchange
