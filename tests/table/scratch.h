// A folder for one test, gone after it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace shoal::table {

class Scratch {
 public:
  Scratch() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / ("shoal-table-" + std::to_string(::getpid()) + "-" + test->name());
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::size_t files_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace shoal::table
