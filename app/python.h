// The Python beside this program: what needs PyTorch runs there.
#pragma once

#include <string>
#include <vector>

namespace shoal::app {

// SHOAL_PYTHON; else `python` in the folder of this program (a virtual environment's bin); else python3.
std::string find_python();

// {python, "-m", module}. Throws Error{unsupported} if that Python lacks PyTorch or the package shoal.
std::vector<std::string> python_module(const std::string& module);

}  // namespace shoal::app
