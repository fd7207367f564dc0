#include "app/python.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/spawn.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

// Prints what is missing, without the seconds that importing it would take.
constexpr const char* what_is_missing =
    "import importlib.util as u; print(' and '.join(n for n in ('torch', 'shoal') if not (u.find_spec(n) and "
    "u.find_spec(n).origin)))";

}  // namespace

std::string find_python() {
  if (const char* chosen = std::getenv("SHOAL_PYTHON")) {
    try {
      return find_program(chosen);
    } catch (const Error& error) {
      throw Error(error.code(), error.fact(), "SHOAL_PYTHON");
    }
  }
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "python";
  if (!error && ::access(beside.c_str(), X_OK) == 0) return beside;
  return find_program("python3");
}

std::vector<std::string> python_module(const std::string& module) {
  const std::string python = find_python();
  const ToolResult looked = run_tool({python, "-c", what_is_missing});
  const std::string missing = looked.out.substr(0, looked.out.find('\n'));
  if (looked.status != 0 || !missing.empty()) {
    throw Error(Code::unsupported, looked.status != 0 ? "cannot be used" : "lacks " + missing, python,
                "make build, or SHOAL_PYTHON=/path/to/a/python with PyTorch and shoal");
  }
  return {python, "-m", module};
}

std::string last_words(const ToolResult& ended) {
  const std::string line = last_line(ended.err), own = "shoal: ";
  return line.starts_with(own) ? line.substr(own.size()) : line;
}

}  // namespace shoal::app
