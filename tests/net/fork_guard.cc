// A forked child (a data loader) holds none of its parent's connections, and nothing else is taken from it. The
// child reports by its exit status which descriptors it still has; the numbers are compared with fcntl.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shoal/net/loop.h"
#include "shoal/net/sockets.h"

namespace shoal::net {
namespace {

bool open_in_child(int fd) {
  const pid_t child = fork();
  if (child == 0) _exit(fcntl(fd, F_GETFD) >= 0 ? 1 : 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

TEST(fork_guard, a_guarded_socket_stays_with_the_parent) {
  Loop::shared();  // hooks into fork
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_TRUE(open_in_child(fd));
  {
    const ForkGuard guard(fd);
    EXPECT_FALSE(open_in_child(fd));
  }
  EXPECT_TRUE(open_in_child(fd));
  close(fd);
}

// A connection that was refused is closed a moment before its guard goes; a pipe or another socket that takes the
// number in between belongs to somebody else.
TEST(fork_guard, what_took_over_a_closed_sockets_number_is_left_alone) {
  Loop::shared();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const ForkGuard guard(fd);
  close(fd);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(ends[0], fd);
  EXPECT_TRUE(open_in_child(fd));
  close(ends[0]);
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(other, fd);
  EXPECT_TRUE(open_in_child(other));
  close(other);
  close(ends[1]);
}

}  // namespace
}  // namespace shoal::net
