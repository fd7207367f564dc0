// The Python beside this program: what needs PyTorch runs there.
#pragma once

#include <string>
#include <vector>

#include "app/spawn.h"

namespace shoal::app {

// SHOAL_PYTHON; else `python` in the folder of this program (a virtual environment's bin); else python3.
std::string find_python();

// {python, "-m", module}. Throws Error{unsupported} if that Python lacks PyTorch or the package shoal.
std::vector<std::string> python_module(const std::string& module);

// The line with which one of the package's modules has ended, without the "shoal: " before it; empty if there is none.
std::string last_words(const ToolResult& ended);

}  // namespace shoal::app
