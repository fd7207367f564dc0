// This process's environment, in which an empty variable is none.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace shoal::net {

inline std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return {};
  return value;
}

}  // namespace shoal::net
