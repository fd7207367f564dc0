#include "app/run_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "shoal/core/error.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 64;
constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

}  // namespace

fs::path make_run_folder(const std::string& name) {
  if (name.empty() || name.size() > longest_name || name.find_first_not_of(letters) != std::string::npos) {
    throw Error(Code::invalid_argument, "'" + name + "' is no name for a run", "--name",
                "1 to 64 letters, digits, dots, dashes and underscores");
  }
  const fs::path runs = fs::absolute("runs");
  ::mkdir(runs.c_str(), 0777);
  const std::string stem = utc_now() + "-" + name;
  for (int i = 1; i < 1000; ++i) {
    const fs::path folder = runs / (i == 1 ? stem : stem + "-" + std::to_string(i));
    if (::mkdir(folder.c_str(), 0777) == 0 && ::mkdir((folder / "logs").c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) break;
  }
  throw Error(Code::invalid_argument, std::string("cannot write: ") + std::strerror(errno), runs.string(),
              "run in a folder that you may write");
}

std::string name_of_command(const std::string& program, const std::string& first_argument) {
  std::string name = fs::path(program).filename();
  if (name.starts_with("python") && !first_argument.empty() && !first_argument.starts_with('-')) {
    name = fs::path(first_argument).stem();
  }
  std::string clean;
  for (char c : name) clean += std::strchr(letters, c) ? c : '_';
  return clean.substr(0, longest_name);
}

}  // namespace shoal::app
