// Files that are there whole or not at all: written beside their place, then renamed. Threads: as many as there are files.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace shoal {

// fill writes the file that it is given, or throws. Throws Error{invalid_argument} naming `file` for a place where no file can be, Error{io} for a disk
// that refuses, with nothing left beside it; what was there before stays.
// A link is followed; a device or a pipe is written as it is.
void write_aside(const std::filesystem::path& file, const std::function<void(const std::filesystem::path&)>& fill);
void write_aside(const std::filesystem::path& file, std::string_view text);

}  // namespace shoal
