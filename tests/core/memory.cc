// Limits of control groups of both versions, in a tree that looks like a system's.
#include "shoal/core/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace shoal {
namespace {

namespace fs = std::filesystem;

class Memory : public testing::Test {
 protected:
  Memory() : root_(fs::temp_directory_path() / ("shoal-memory-" + std::to_string(::getpid()))) {}
  ~Memory() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const fs::path root_;
};

TEST_F(Memory, is_the_machines_where_nothing_limits_it) {
  const std::uint64_t machines = memory_here(root_);
  EXPECT_GT(machines, 0);
  write("proc/self/cgroup", "0::/user/session\n");
  write("sys/fs/cgroup/user/session/memory.max", "max\n");
  EXPECT_EQ(memory_here(root_), machines);
}
TEST_F(Memory, is_the_least_limit_of_the_groups_around) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/memory.max", "20000000\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/c/memory.max", "30000000\n");
  EXPECT_EQ(memory_here(root_), 20'000'000);
  write("sys/fs/cgroup/memory.max", "10000000\n");
  EXPECT_EQ(memory_here(root_), 10'000'000);
}
TEST_F(Memory, knows_groups_of_the_first_version) {
  write("proc/self/cgroup", "11:cpu,cpuacct:/box\n7:memory:/box\n1:name=systemd:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "5000000\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_here(root_), 5'000'000);
}

}  // namespace
}  // namespace shoal
