// The folder of a run: runs/<UTC>-<name>/, with logs/rank-N.log.
#pragma once

#include <filesystem>
#include <string>

namespace shoal::app {

// Makes runs/20261121T145815Z-name under the working folder and returns its absolute path; a second run
// within the same second gets -2 behind it. Throws Error{invalid_argument} for a malformed name or a folder
// that cannot be written.
std::filesystem::path make_run_folder(const std::string& name);

// A name for a run of this command line: "python train.py" -> "train".
std::string name_of_command(const std::string& program, const std::string& first_argument);

}  // namespace shoal::app
