#include "app/found_run.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "shoal/core/error.h"

namespace shoal::app {

namespace fs = std::filesystem;

namespace {

// Names begin with the time, so the last one in order is the newest.
fs::path newest_run(const std::function<bool(const fs::path&)>& fits, const NoneFits& none) {
  std::vector<fs::path> folders;
  std::error_code no_folder;
  for (const auto& entry : fs::directory_iterator("runs", no_folder)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.rbegin(), folders.rend());
  const auto newest = std::find_if(folders.begin(), folders.end(), fits);
  if (newest == folders.end()) throw Error(Code::invalid_argument, none.fact, "runs", none.hint);
  return *newest;
}

}  // namespace

fs::path find_run(const std::string& run, const std::function<bool(const fs::path&)>& fits, const NoneFits& none) {
  if (run.empty()) return newest_run(fits, none);
  std::error_code cannot_look;
  if (fs::is_directory(run, cannot_look)) return run;
  if (fs::is_directory(fs::path("runs") / run, cannot_look)) return fs::path("runs") / run;
  throw Error(Code::invalid_argument, "there is no such run", run, "give its folder, or its name in runs/");
}

}  // namespace shoal::app
