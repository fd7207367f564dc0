#include "shoal/core/aside.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "shoal/core/error.h"

namespace shoal {
namespace fs = std::filesystem;
namespace {

// A place that there is not, or that is not ours, is who named it to mend; the disk's troubles are not.
Code code_of(const std::error_code& why) {
  constexpr std::errc kNamed[] = {std::errc::no_such_file_or_directory, std::errc::not_a_directory, std::errc::is_a_directory,
                                  std::errc::permission_denied, std::errc::read_only_file_system, std::errc::filename_too_long};
  return std::ranges::any_of(kNamed, [&](std::errc named) { return why == named; }) ? Code::invalid_argument : Code::io;
}

[[noreturn]] void refuse(const std::error_code& why, const fs::path& file) {
  throw Error(code_of(why), "cannot be written: " + why.message(), file.string());
}

}  // namespace

void write_aside(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  std::error_code none;
  const fs::path linked = fs::canonical(path, none);
  const fs::path file = none ? path : linked;
  if (fs::is_directory(file, none)) refuse(std::make_error_code(std::errc::is_a_directory), file);
  if (fs::exists(file, none) && !fs::is_regular_file(file, none)) return fill(file);
  const fs::path aside = file.parent_path() / ("." + file.filename().string() + "." + std::to_string(::getpid()));
  std::error_code error, ignored;
  try {
    fill(aside);
  } catch (...) {
    fs::remove(aside, ignored);
    throw;
  }
  fs::rename(aside, file, error);
  if (!error) return;
  fs::remove(aside, ignored);
  refuse(error, file);
}

void write_aside(const fs::path& file, std::string_view text) {
  write_aside(file, [&](const fs::path& aside) {
    std::ofstream out(aside, std::ios::binary);
    out << text;
    out.close();
    if (!out) refuse(std::error_code(errno, std::generic_category()), file);
  });
}

}  // namespace shoal
