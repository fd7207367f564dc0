// How long a test is to go on, where somebody says so: nightly runs ask for more than every submission can wait for.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace shoal {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace shoal
