// The exit status of a run, from how its members ended. The whole truth table is here; run_ends.cc has real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include "app/verdict.h"

namespace shoal::app {
namespace {

struct End {
  int status = 0;
  bool killed = false;        // by the launcher
  const char* trouble = "";   // with another host
};

// `ends` by rank; all that have a status were noticed in the order of their ranks.
Verdict verdict(const std::vector<End>& ends, const Terms& terms) {
  std::vector<Member> members(ends.size());
  std::vector<unsigned> failures;
  for (unsigned rank = 0; rank < ends.size(); ++rank) {
    members[rank].ended = true;
    members[rank].status = ends[rank].status;
    members[rank].signal = ends[rank].status > 128 ? ends[rank].status - 128 : 0;
    members[rank].killed = ends[rank].killed;
    members[rank].trouble = ends[rank].trouble;
    if (ends[rank].status != 0) failures.push_back(rank);
  }
  return judge(members, failures, terms);
}

constexpr std::optional<unsigned> nobody;
constexpr Told untold{}, by_term{SIGTERM}, by_int{SIGINT}, twice{SIGTERM, true};

struct Case {
  const char* what;
  std::vector<End> ends;
  Told told;
  std::optional<unsigned> culprit;
  int status;
};

TEST(verdict, says_who_failed_first_and_how) {
  const Case cases[] = {
      {"all is well", {{0}, {0}}, untold, nobody, 0},
      {"one failed", {{0}, {7}}, untold, 1, 7},
      {"a consequence goes behind its cause", {{3}, {7}}, untold, 1, 7},
      {"all lost somebody", {{3}, {3}}, untold, 0, 3},
      {"killed, and lost by the others", {{3}, {137}}, untold, 1, 3},
      {"killed, and nobody minds", {{0}, {137}}, untold, 1, 137},
      {"a member that was ended by TERM, in a run that nobody told to end", {{0}, {143}}, untold, 1, 143},

      {"all ended by TERM, or saved", {{143}, {143}}, by_term, nobody, 143},
      {"one had come to its end", {{0}, {143}}, by_term, nobody, 143},
      {"one saw the other go", {{3}, {143}}, by_term, nobody, 143},
      {"one could not save", {{143}, {1}}, by_term, 1, 1},
      {"one could not save and the other saw it go", {{3}, {2}}, by_term, 1, 2},
      {"one was killed while it saved", {{3}, {137}}, by_term, 1, 3},
      {"all had lost somebody before", {{3}, {3}}, by_term, 0, 3},
      {"a connection broke while members saved", {{143}, {3, false, "lost the connection with host b"}}, by_term, 1, 3},
      {"one did not end in its time", {{143}, {137, true}}, by_term, 1, 137},

      {"the user did not wait", {{137, true}, {143}}, twice, nobody, 143},
      {"the user did not wait, yet one failed", {{137, true}, {1}}, twice, 1, 1},
      {"Ctrl-C", {{143}, {143}}, by_int, nobody, 130},
      {"Ctrl-C promises no time to save", {{143}, {137, true}}, by_int, nobody, 130},
      {"Ctrl-C, and one failed", {{143}, {2}}, by_int, 1, 2},
  };
  for (const Case& one : cases) {
    const Verdict found = verdict(one.ends, {one.told});
    EXPECT_EQ(found.culprit, one.culprit) << one.what;
    EXPECT_EQ(found.status, one.status) << one.what;
  }
}

TEST(verdict, an_end_is_said_in_words) {
  Member member;
  member.status = 5;
  EXPECT_EQ(describe(member), "exit status 5");
  member.status = 128 + SIGKILL;
  member.signal = SIGKILL;
  EXPECT_EQ(describe(member), "killed by signal 9 (KILL)");
  member.killed = true;
  EXPECT_EQ(describe(member), "it was told to end, did not, and was killed");
  member.trouble = "lost the connection with host b";
  EXPECT_EQ(describe(member), "lost the connection with host b");
}

TEST(Verdict, where_members_go_on_without_the_lost_the_work_is_done_if_one_says_so) {
  const std::vector<End> one_lost = {{.status = 0}, {.status = 128 + SIGKILL}, {.status = 0}};
  EXPECT_EQ(verdict(one_lost, {{}, true}).status, 0);
  EXPECT_EQ(verdict(one_lost, {{}, true}).culprit, nobody);
  EXPECT_EQ(verdict(one_lost, {{}, false}).culprit, 1u);
  const std::vector<End> all_lost = {{.status = 3}, {.status = 128 + SIGKILL}, {.status = 3}};
  EXPECT_EQ(verdict(all_lost, {{}, true}).status, 3);
  EXPECT_EQ(verdict(all_lost, {{}, true}).culprit, 1u);
}

}  // namespace
}  // namespace shoal::app
