// Small files as text, bounded, whoever wrote them. Threads: any.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace shoal {

// A file's first `most` bytes and one more, which is enough for its reader to refuse a longer one. A pipe is read, too.
// Throws Error{invalid_argument} naming the file where it cannot be read.
std::string read_text(const std::filesystem::path& file, std::size_t most = 64 << 20);

// All of a file. Throws the same where it has more than `most` bytes.
std::string read_whole_text(const std::filesystem::path& file, std::size_t most);

}  // namespace shoal
