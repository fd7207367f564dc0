#include "shoal/core/seed.h"

namespace shoal {
namespace {

using Words = std::array<std::uint32_t, 4>;

// One round: two 32x32 -> 64 multiplications whose halves are crossed and keyed (Figure 5).
Words philox_round(const Words& counter, std::uint32_t key0, std::uint32_t key1) {
  const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
  const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
  return {
      static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
      static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
}

}  // namespace

std::array<std::uint32_t, 4> random_words(std::uint64_t seed, std::uint64_t step, std::uint32_t sample,
                                          std::uint32_t site) {
  Words words{static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), sample, site};
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    words = philox_round(words, key0, key1);
    key0 += 0x9E3779B9;  // Weyl sequence of the golden ratio and of sqrt(3) - 1
    key1 += 0xBB67AE85;
  }
  return words;
}

double uniform(std::uint64_t seed, std::uint64_t step, std::uint32_t sample, std::uint32_t site) {
  const Words words = random_words(seed, step, sample, site);
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace shoal
