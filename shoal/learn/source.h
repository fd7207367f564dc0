// Where the samples of a learner come from. A value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace shoal::learn {

struct Source {
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> test_files;  // held out; none: a share of `files` is
  double test_share = 0.1;                        // in [0, 1)
  std::uint64_t seed = 1;                         // of the choice
  bool skip_faulty = false;                       // lines
  std::filesystem::path rows_in{};                // a folder for files that rows are kept in; none: they are kept in memory
};

}  // namespace shoal::learn
