// However a run ends, nothing that it started is left: members, their children, and children that fled into a
// session of their own. Members print the pids; what must not be alive afterwards is looked up in /proc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

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

TEST(run_ends, a_stopped_member_is_named_and_ended_where_the_others_have_ended_without_it) {
  const Folder folder;
  Program program(folder, {SHOAL_PROGRAM, "run", "-n", "2", "--on-peer-lost", "shrink", "--", "sh", "-c", "test $SHOAL_RANK = 0 || kill -STOP $$"});
  const auto outcome = program.wait();
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("shoal: rank 1 stands still (stopped), and the others have ended without it: it is ended\n"));
}

// What a killed launcher leaves becomes this test's children and is waited for.
TEST(run_ends, nothing_outlives_a_killed_launcher) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const Folder folder;
  Program program(folder, words_of(2, family));
  const auto pids = pids_in(program.lines(2));
  ASSERT_EQ(pids.size(), 6u);
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().status, 137);
  for (pid_t pid : pids) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
}

// A member that saves when it is told to end, and a shell around it that does not wait for it: it comes to its end.
TEST(run_ends, a_wrapped_member_has_time_to_save_after_term) {
  const Folder folder;
  folder.write("saves", "trap 'read go < fifo; echo saved > saved; exit 143' TERM; echo $$; while :; do sleep 0.05; done");
  Program program(folder, words_of(1, "mkfifo fifo; echo $$; sh saves & wait"));
  const auto pids = pids_in(program.lines(2));
  std::fstream go(folder.path() / "fifo");  // both ways: opening waits for nobody
  program.signal(SIGTERM);
  pollfd shell{static_cast<int>(::syscall(SYS_pidfd_open, pids.at(0), 0)), POLLIN, 0};
  if (shell.fd >= 0) ::poll(&shell, 1, 20'000);  // until it has ended; of one that is gone there is no descriptor
  ::close(shell.fd);
  go << "go" << std::endl;
  EXPECT_EQ(program.wait().status, 143);
  EXPECT_EQ(read_file(folder.path() / "saved"), "saved\n");
  for (pid_t pid : pids) EXPECT_FALSE(alive(pid));
}

// Rank 0 saves and ends as it was told; rank 1 cannot.
TEST(run_ends, a_member_that_could_not_save_after_term_is_told_and_its_status_is_that_of_the_run) {
  const Folder folder;
  Program program(folder, words_of(2, "trap 'test $SHOAL_RANK = 0 && exit 143; echo no room >&2; exit 2' TERM; echo $$; "
                                      "while :; do sleep 0.05; done"));
  const auto pids = pids_in(program.lines(2));
  program.signal(SIGTERM);
  const auto outcome = program.wait();
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, EndsWith("shoal: ended by TERM; every member has ended\n"
                                    "shoal: rank 1 failed first: exit status 2: no room\n"));
  for (pid_t pid : pids) EXPECT_FALSE(alive(pid));
}

TEST(run_ends, usr1_reaches_the_members_that_handle_it_and_no_other) {
  const Folder folder;
  folder.write("saves", "trap 'echo told; exit 0' USR1; echo ready; while :; do sleep 0.05; done");
  Program program(folder, words_of(2, "sh saves; exit $?"));
  program.lines(2);
  program.signal(SIGUSR1);
  const auto outcome = program.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::AllOf(testing::HasSubstr("[0] told\n"), testing::HasSubstr("[1] told\n")));
}

}  // namespace
}  // namespace shoal::app::test
