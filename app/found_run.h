// The folder of a run that a command line means.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace shoal::app {

struct NoneFits {
  const char *fact, *hint;  // what to say where there is no such one, and what to do
};
// run: a folder, or its name in runs/; empty: the newest in runs/ that fits. Throws Error{invalid_argument}.
std::filesystem::path find_run(const std::string& run, const std::function<bool(const std::filesystem::path&)>& fits, const NoneFits& none);

}  // namespace shoal::app
