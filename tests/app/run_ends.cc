// However a run ends, nothing that it started is left: members, their children, and children that fled into a
// session of their own. Members print the pids; what must not be alive afterwards is looked up in /proc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::EndsWith;

// Prints one line: its own pid, a child's and a fled grandchild's; then waits for ever.
constexpr const char* family =
    "sleep 1000 & child=$!; fled=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); "
    "echo $$ $child $fled; wait";

std::vector<pid_t> pids_in(const std::vector<std::string>& lines) {
  std::vector<pid_t> pids;
  for (const auto& line : lines) {
    std::istringstream words(line.substr(line.find(' ')));
    for (pid_t pid; words >> pid;) pids.push_back(pid);
  }
  return pids;
}

std::vector<std::string> words_of(unsigned members, const std::string& script) {
  auto words = run_script(members, script);
  words.insert(words.begin(), SHOAL_PROGRAM);
  return words;
}

void expect_none_left_after(int signal, int status, const std::string& name) {
  const Folder folder;
  Program program(folder, words_of(2, family));
  const auto pids = pids_in(program.lines(2));
  ASSERT_EQ(pids.size(), 6u);
  for (pid_t pid : pids) EXPECT_TRUE(alive(pid));
  program.signal(signal);
  const auto outcome = program.wait();
  EXPECT_EQ(outcome.status, status);
  EXPECT_THAT(outcome.err, EndsWith("shoal: ended by " + name + "; every member has ended\n"));
  for (pid_t pid : pids) EXPECT_FALSE(alive(pid));
}

TEST(run_ends, term_ends_every_member_and_its_descendants) { expect_none_left_after(SIGTERM, 143, "TERM"); }
TEST(run_ends, ctrl_c_ends_every_member_and_its_descendants) { expect_none_left_after(SIGINT, 130, "INT"); }
TEST(run_ends, a_closed_terminal_ends_every_member_and_its_descendants) {
  expect_none_left_after(SIGHUP, 129, "HUP");
}

TEST(run_ends, a_second_signal_does_not_wait_for_members_that_ignore_the_first) {
  const Folder folder;
  Program program(folder, words_of(1, "trap 'echo no' TERM; echo $$; while :; do read x < fifo; done"));
  const auto pids = pids_in(program.lines(1));
  program.signal(SIGTERM);
  program.lines(2);  // it refused
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 143);
  EXPECT_FALSE(alive(pids.at(0)));
}

TEST(run_ends, success_leaves_nothing_behind_either) {
  const Folder folder;
  Program program(folder, words_of(2, std::string("wait() { :; }; ") + family));
  const auto pids = pids_in(program.lines(2));
  EXPECT_EQ(program.wait().status, 0);
  ASSERT_EQ(pids.size(), 6u);
  for (pid_t pid : pids) EXPECT_FALSE(alive(pid));
}

TEST(run_ends, a_stopped_member_is_ended_too) {
  const Folder folder;
  Program program(folder, words_of(1, "echo $$; kill -STOP $$; exec sleep 1000"));
  const auto pids = pids_in(program.lines(1));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().status, 143);
  EXPECT_FALSE(alive(pids.at(0)));
}

// Members of a launcher that was killed become this test's children and are waited for.
TEST(run_ends, members_do_not_outlive_a_killed_launcher) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const Folder folder;
  Program program(folder, words_of(2, "echo $$; exec sleep 1000"));
  const auto pids = pids_in(program.lines(2));
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().status, 137);
  for (pid_t pid : pids) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
}

}  // namespace
}  // namespace shoal::app::test
