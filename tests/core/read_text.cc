// Goal: a file is read whole up to a bound, and one byte beyond it tells that there is more; what is no file is named with why. Method: files of sizes
// around the pieces in which they are read. Oracle: what was written.
#include "shoal/core/read_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/refusal.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

class ReadText : public testing::Test {
 protected:
  ReadText() : folder_(fs::path(testing::TempDir()) / ("read_text_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~ReadText() override { fs::remove_all(folder_); }

  const fs::path folder_;
};

TEST_F(ReadText, gives_what_is_in_the_file_up_to_a_byte_beyond_the_bound) {
  std::string all;
  for (std::size_t i = 0; i < 300'000; ++i) all += static_cast<char>(i % 251);
  for (const std::size_t size : {0, 1, 65'535, 65'536, 65'537, 131'072, 300'000}) {
    const fs::path file = folder_ / std::to_string(size);
    std::ofstream(file, std::ios::binary) << all.substr(0, size);
    EXPECT_EQ(read_text(file), all.substr(0, size)) << size;
    for (const std::size_t most : {0, 1, 65'536, 299'999, 300'000})
      EXPECT_EQ(read_text(file, most), all.substr(0, std::min(size, most + 1))) << size;
  }
}

TEST_F(ReadText, says_what_cannot_be_read_and_why) {
  const std::string none = folder_ / "none", folder = folder_;
  EXPECT_EQ(refusal([&] { read_text(none); }), none + ": cannot be read: No such file or directory");
  EXPECT_EQ(refusal([&] { read_text(folder); }), folder + ": cannot be read: Is a directory");
}

}  // namespace
}  // namespace shoal
