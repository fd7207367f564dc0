// How long a test is to go on and from where, if somebody says so: nightly runs ask for more than every submission can wait for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <ranges>
#include <vector>

namespace shoal {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What a property is searched with: SHOAL_SEEDS of them (or as many as `otherwise` says) from SHOAL_FIRST_SEED on.
inline auto seeds(std::uint64_t otherwise) {
  const std::uint64_t first = from_environment("SHOAL_FIRST_SEED", 1);
  return std::views::iota(first, first + from_environment("SHOAL_SEEDS", otherwise));
}

// One of several, drawn by the seed: so that a search over many kinds takes no longer than over one.
template <class T>
const T& drawn_from(const std::vector<T>& any, std::uint64_t seed) {
  return any[std::mt19937_64(~seed)() % any.size()];
}

}  // namespace shoal
