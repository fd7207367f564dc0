#include "shoal/core/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace shoal {
namespace {

namespace fs = std::filesystem;

// The least limit from a group up to the root of all; "max", and what is not there, is none.
std::uint64_t least_limit(const fs::path& groups, fs::path group, const char* file, std::uint64_t least) {
  for (;; group = group.parent_path()) {
    std::uint64_t limit = 0;
    if (std::ifstream(groups / group.relative_path() / file) >> limit) least = std::min(least, limit);
    if (!group.has_relative_path()) return least;
  }
}

}  // namespace

std::uint64_t memory_here(const fs::path& root) {
  std::uint64_t least = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream memberships(root / "proc/self/cgroup");  // lines: number, controllers, group, divided by colons
  for (std::string line; std::getline(memberships, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) least = least_limit(root / "sys/fs/cgroup", group, "memory.max", least);
    if (controllers == "memory") least = least_limit(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", least);
  }
  return least;
}

}  // namespace shoal
