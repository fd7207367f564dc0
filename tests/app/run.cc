// `shoal run` with real members: small shell scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

TEST(run, members_know_their_place_and_speak_behind_it) {
  const Folder folder;
  const auto outcome = shoal(folder, run_script(3, "echo $SHOAL_RANK of $SHOAL_SIZE"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(sorted_lines(outcome.out), UnorderedElementsAre("[0] 0 of 3", "[1] 1 of 3", "[2] 2 of 3"));
  EXPECT_EQ(outcome.err, "shoal: run folder " + folder.only_run().string() + "\n");
}

TEST(run, members_that_only_serve_come_behind_the_others) {
  const Folder folder;
  const auto outcome = shoal(folder, {"run", "-n", "2", "--servers", "1", "--", "/bin/sh", "-c", "echo $SHOAL_RANK of $SHOAL_SIZE $SHOAL_ROLE"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(sorted_lines(outcome.out), UnorderedElementsAre("[0] 0 of 3 worker", "[1] 1 of 3 worker", "[2] 2 of 3 server"));
}

TEST(run, each_member_has_its_raw_output_in_a_log) {
  const Folder folder;
  shoal(folder, run_script(2, "printf 'a\\rb\\n'; [ $SHOAL_RANK = 1 ] && echo only-1 >&2; printf end"));
  EXPECT_EQ(read_file(folder.only_run() / "logs/rank-0.log"), "a\rb\nend");
  EXPECT_THAT(read_file(folder.only_run() / "logs/rank-1.log"), HasSubstr("only-1\n"));
}

TEST(run, all_members_share_one_secret_and_no_two_runs_do) {
  const Folder folder;
  const auto script = run_script(2, "echo $SHOAL_SECRET $SHOAL_COORD $SHOAL_JOB $SHOAL_RUN_DIR");
  const auto first = sorted_lines(shoal(folder, script).out),
             second = sorted_lines(shoal(folder, script).out);
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(first[0].substr(4), first[1].substr(4));
  EXPECT_NE(first[0].substr(4, 64), second[0].substr(4, 64));
  EXPECT_THAT(first[0],
              MatchesRegex("\\[.\\] [0-9a-f]+ 127\\.0\\.0\\.1:[0-9]+ [0-9TZ]+-sh /.*/runs/[0-9TZ]+-sh"));
}

TEST(run, cores_are_shared_out_unless_the_user_says_otherwise) {
  const Folder folder;
  const auto shared = shoal(folder, run_script(64, "[ $SHOAL_RANK = 0 ] && echo $OMP_NUM_THREADS; true"));
  EXPECT_THAT(shared.out, MatchesRegex("\\[0\\] [0-9]+\n"));
  const auto said = shoal(folder, run_script(1, "echo $OMP_NUM_THREADS"), {{"OMP_NUM_THREADS", "7"}});
  EXPECT_EQ(said.out, "[0] 7\n");
}

TEST(run, words_after_the_dashes_reach_the_member_unchanged) {
  const Folder folder;
  const auto outcome =
      shoal(folder, {"run", "-n", "1", "--", "/bin/echo", "--members", "a  b", "--", "$X", ""});
  EXPECT_EQ(outcome.out, "[0] --members a  b -- $X \n");
}

// The first failing member decides; its last words end the launcher's output.
TEST(run, exit_codes_pass_through) {
  const Folder folder;
  for (int status : {1, 2, 3, 77}) {
    const auto outcome = shoal(folder, run_script(1, "echo why >&2; exit " + std::to_string(status)));
    EXPECT_EQ(outcome.status, status);
    EXPECT_THAT(outcome.err,
                EndsWith("\nshoal: rank 0 failed first: exit status " + std::to_string(status) + ": why\n"));
  }
}

TEST(run, a_member_killed_by_a_signal_counts_as_128_and_the_signal) {
  const Folder folder;
  const auto outcome = shoal(folder, run_script(1, "kill -9 $$"));
  EXPECT_EQ(outcome.status, 137);
  EXPECT_THAT(outcome.err, EndsWith("shoal: rank 0 failed first: killed by signal 9 (KILL)\n"));
}

// Three members: `dying` dies as `how` says once the others are waiting for its end; they lose it and say so in the same
// words. The fifo makes the order certain: a reader's wait ends when the last writer is gone.
std::vector<std::string> loss_of(int dying, const std::string& how) {
  const std::string rank = std::to_string(dying), one = dying == 0 ? "1" : "0", other = dying == 2 ? "1" : "2";
  return run_script(3, "mkfifo f$SHOAL_RANK; "
                       "if [ $SHOAL_RANK = " + rank + " ]; then exec 8>f" + one + " 9>f" + other + "; " + how + "; fi; "
                       "cat f$SHOAL_RANK; echo 'rank " + rank + " was lost' >&2; exit 3");
}

TEST(run, the_cause_is_named_last_and_the_others_words_once) {
  const Folder folder;
  const auto outcome = shoal(folder, loss_of(1, "echo 'disk full' >&2; exit 1"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("shoal: ranks 0, 2 ended with: rank 1 was lost\n"));
  EXPECT_THAT(outcome.err, EndsWith("shoal: rank 1 failed first: exit status 1: disk full\n"));
}

// The line names the member and the signal, and the run as a whole has lost a member.
TEST(run, a_killed_member_that_others_lost_makes_the_run_end_with_3) {
  const Folder folder;
  const auto outcome = shoal(folder, loss_of(0, "kill -9 $$"));
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, HasSubstr("shoal: ranks 1, 2 ended with: rank 0 was lost\n"));
  EXPECT_THAT(outcome.err, EndsWith("shoal: rank 0 failed first: killed by signal 9 (KILL)\n"));
}

TEST(run, a_flag_beats_the_environment_which_beats_the_file) {
  const Folder folder;
  folder.write("shoal.toml", "[run]\nmembers = 2\nname = \"filed\"\n");
  const auto members = [&](std::vector<std::string> flags, const Program::Variables& variables) {
    std::vector<std::string> words{"--config", "shoal.toml", "run"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", "echo $SHOAL_SIZE $SHOAL_JOB"});
    return sorted_lines(shoal(folder, words, variables).out);
  };
  EXPECT_THAT(members({}, {}).at(0), MatchesRegex("\\[.\\] 2 .*-filed.*"));
  EXPECT_THAT(members({}, {{"SHOAL_MEMBERS", "3"}}).at(0), MatchesRegex("\\[.\\] 3 .*-filed.*"));
  EXPECT_THAT(members({"-n", "4"}, {{"SHOAL_MEMBERS", "3"}}).at(0), MatchesRegex("\\[.\\] 4 .*-filed.*"));
}

TEST(run, the_plan_that_is_asked_for_reaches_the_members) {
  const Folder folder;
  const auto told = [&](std::vector<std::string> flags) {
    std::vector<std::string> words{"run", "-n", "2"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", "echo \"plan $SHOAL_PLAN\""});
    return sorted_lines(shoal(folder, words, {{"SHOAL_PLAN", "wfbp"}}).out);
  };
  EXPECT_THAT(told({"--plan", "p3,*=ring"}), UnorderedElementsAre("[0] plan p3,*=ring", "[1] plan p3,*=ring"));
  EXPECT_THAT(told({}), UnorderedElementsAre("[0] plan wfbp", "[1] plan wfbp"));
}

// Every mistake: one line, exit status 2, and no folder of a run that never was.
TEST(run, mistakes_are_refused_in_one_line) {
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"run", "-n", "0", "--", "true"}, "-n: a run has 1 to 1024 members, not 0\n"},
      {{"run", "-n", "-3", "--", "true"}, "-n: a run has 1 to 1024 members, not -3\n"},
      {{"run", "-n", "2", "--servers", "-1", "--", "true"}, "--servers: -1 members that only serve (0 or more)\n"},
      {{"run", "-n", "1023", "--servers", "2", "--", "true"}, "-n: a run has 1 to 1024 members, not 1025\n"},
      {{"run", "-n", "2", "--servers", "1", "--on-peer-lost", "shrink", "--", "true"},
       "--on-peer-lost: where members only serve a run ends with the first that is lost (fail, or no --servers)\n"},
      {{"run", "-n", "2", "--", "no-such-command"}, "command not found: no-such-command\n"},
      {{"run", "-n", "2", "--", "./no/such"}, "command not found: ./no/such\n"},
      {{"run", "-n", "2"},
       "shoal run: no command to start (give it after --, as in: shoal run ... -- python train.py)\n"},
      {{"run", "-n", "2", "--nmae", "x", "--", "true"},
       "shoal run: unknown flag --nmae (shoal run --help lists them; the command goes after --)\n"},
      {{"run", "-n", "2", "--lab", "nowhere", "--", "true"},
       "there is no lab nowhere (shoal lab list; shoal lab up -n 4 --name nowhere)\n"},
      {{"run", "-n", "2", "--plan", "none.json", "--", "true"}, "--plan: no such file: none.json\n"},
      {{"run", "-n", "2", "--plan", "a.json", "--", "true"}, "a.json: is not JSON (is this a plan.json of a Shoal run?)\n"},
      {{"run", "-n", "2", "--plan", "auto,ring", "--", "true"},
       "--plan: \"ring\" is no GLOB=WAY (one policy, then overrides: auto,embed*=ring)\n"},
      {{"run", "-n", "1", "--name", "a/b", "--", "true"},
       "--name: 'a/b' is no name for a run (1 to 64 letters, digits, dots, dashes and underscores)\n"},
      {{"swim"}, "shoal: there is no command swim (shoal --help lists them)\n"},
      {{}, "shoal: no command (shoal --help lists them)\n"},
      {{"run", "-n", "2", "--", "./a.sh"}, "./a.sh: is not executable (chmod +x ./a.sh)\n"},
      {{"run", "-n", "2", "--", "/usr"}, "/usr: is a folder, no command\n"},
      {{"program", "show", "ring", "more", "-n", "2"}, "shoal program show: does not take more (shoal --help-all lists every flag)\n"},
      {{"doctor", "--no-such"}, "shoal doctor: unknown flag --no-such (shoal --help-all lists every flag)\n"},
      {{"--config", "a.sh", "lab", "list"}, "--config: there is no flag for echo (shoal --help-all lists commands and flags)\n"},
      {{"--config", "a.toml", "lab", "list"}, "--config: there is no flag for run.memmers (shoal --help-all lists commands and flags)\n"},
      {{"--config", SHOAL_PROGRAM, "lab", "list"}, "--config: it is no text (shoal --help-all lists commands and flags)\n"},
      {{"train", "lenet", "--checkpoint", ""},
       "shoal: --checkpoint: is empty: leave it out, or set what it is taken from (shoal --help-all lists every flag)\n"},
      {{"lab", "list", "--", "true"}, "shoal lab list: takes no command, but one follows --: true\n"},
  };
  for (const auto& mistake : mistakes) {
    const Folder folder;
    folder.write("a.sh", "echo\n");
    folder.write("a.json", "{");
    folder.write("a.toml", "[run]\nmemmers = 2\n");
    const auto outcome = shoal(folder, mistake.words);
    EXPECT_EQ(outcome.err, mistake.line);
    EXPECT_EQ(outcome.status, 2) << mistake.line;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs")) << mistake.line;
  }
}

TEST(run, a_folder_that_cannot_be_written_is_refused) {
  const Folder folder;
  folder.write("runs", "a file where the folder should be");
  const auto outcome = shoal(folder, run_script(1, "true"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, (folder.path() / "runs").string() +
                             ": cannot be written: Not a directory (run in a folder that you may write)\n");
}

}  // namespace
}  // namespace shoal::app::test
