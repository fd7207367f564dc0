// Tests on real data sets: SHOAL_DATA names the folder of the sets, where this machine has them; elsewhere they are skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace shoal {

class RealSets : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("SHOAL_DATA");
    if (folder == nullptr) GTEST_SKIP() << "no real data sets: SHOAL_DATA is not set";
    folder_ = folder;
  }
  std::filesystem::path folder_;
};

}  // namespace shoal
