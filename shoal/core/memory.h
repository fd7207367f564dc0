// How much memory this process may have. Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shoal {

// That of the machine, or less where a control group that this process is in has a limit (of either version). In bytes. root: of the file system.
std::uint64_t memory_here(const std::filesystem::path& root = "/");

}  // namespace shoal
