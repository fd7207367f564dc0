// A file is there whole or not at all.
#include "shoal/core/aside.h"

#include <gmock/gmock.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "shoal/core/error.h"

namespace shoal {
namespace {
namespace fs = std::filesystem;

class Aside : public testing::Test {
 protected:
  Aside() { fs::create_directories(folder_); }
  ~Aside() override { fs::remove_all(folder_); }

  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  auto files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  const fs::path folder_ = fs::temp_directory_path() / ("shoal-aside-" + std::to_string(::getpid())), file_ = folder_ / "file";
};

TEST_F(Aside, a_failed_write_leaves_what_was_there_and_nothing_beside_it) {
  write_aside(file_, "old");
  EXPECT_THROW(write_aside(file_,
                           [](const fs::path& aside) {
                             std::ofstream(aside) << "ne";
                             throw Error(Code::io, "disk full");
                           }),
               Error);
  EXPECT_EQ(text(), "old");
  EXPECT_EQ(files(), 1);
  write_aside(file_, "new");
  EXPECT_EQ(text(), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(Aside, says_which_file_and_why) {
  const auto refusal = [](const fs::path& file) {
    try {
      write_aside(file, "text");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(folder_ / "none" / "file"), (folder_ / "none" / "file").string() + ": cannot be written: No such file or directory");
  fs::create_directories(file_ / "full");
  EXPECT_THAT(refusal(file_), testing::StartsWith(file_.string() + ": cannot be written: "));
  EXPECT_EQ(refusal("/"), "/: cannot be written: Is a directory");
}

TEST_F(Aside, a_link_is_followed_and_a_pipe_stays_one) {
  write_aside(file_, "old");
  fs::create_symlink("file", folder_ / "link");
  write_aside(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text(), "new");
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_aside(pipe, "through");
  char seen[8] = {};
  EXPECT_EQ(::read(reader, seen, sizeof(seen)), 7);
  EXPECT_STREQ(seen, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  ::close(reader);
}

}  // namespace
}  // namespace shoal
