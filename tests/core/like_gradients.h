// Numbers as gradients have them: near each other in size, and zeros among them.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace shoal {

// zeros: their share.
inline std::vector<float> like_gradients(std::size_t count, double zeros = 0, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> of(0, 1e-3F);
  std::bernoulli_distribution is_zero(zeros);
  std::vector<float> values(count);
  for (float& value : values) value = is_zero(random) ? 0 : of(random);
  return values;
}

}  // namespace shoal
