// The manual and the shells' completion say what the program really takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <sstream>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

// What bash offers for the word at the end of `line`, with our script loaded.
std::vector<std::string> offered(const Folder& folder, const std::string& line) {
  folder.write("shoal", shoal(folder, {"completion", "bash"}).out);
  std::istringstream split(line);
  std::vector<std::string> words{std::istream_iterator<std::string>(split), {}};
  if (line.ends_with(' ')) words.emplace_back();
  std::string script = "source " + (folder.path() / "shoal").string() + "; COMP_WORDS=(";
  for (const auto& word : words) script += "'" + word + "' ";
  script += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _shoal; printf '%s\\n' \"${COMPREPLY[@]}\"";
  folder.write("ask.sh", script);
  FILE* const bash = popen(("bash " + (folder.path() / "ask.sh").string()).c_str(), "r");
  std::string text;
  std::array<char, 4096> piece;
  while (const std::size_t n = fread(piece.data(), 1, piece.size(), bash)) text.append(piece.data(), n);
  EXPECT_EQ(pclose(bash), 0);
  std::istringstream lines(text);
  std::vector<std::string> found;
  for (std::string one; std::getline(lines, one);) found.push_back(one);
  return found;
}

TEST(Completion, bash_offers_commands_verbs_and_flags_where_they_may_stand) {
  const Folder folder;
  EXPECT_THAT(offered(folder, "shoal "), IsSupersetOf({"run", "train", "lab", "doctor", "--help"}));
  EXPECT_EQ(offered(folder, "shoal tr"), std::vector<std::string>{"train"});
  EXPECT_THAT(offered(folder, "shoal lab "), IsSupersetOf({"up", "down", "exec"}));
  EXPECT_THAT(offered(folder, "shoal lab up --ra"), testing::ElementsAre("--rate", "--rates"));
  EXPECT_THAT(offered(folder, "shoal train vgg"), testing::ElementsAre("vgg-a", "vgg19", "vgg19-22k"));
  EXPECT_THAT(offered(folder, "shoal run -n 4 --"), IsSupersetOf({"--members", "--lab"}));
  EXPECT_THAT(offered(folder, "shoal run -n 4 -- ec"), Contains("echo"));
  EXPECT_THAT(offered(folder, "shoal run -n 4 -- ec"), Not(Contains("exec-no-such")));
}

TEST(Completion, all_shells_know_every_flag_of_the_help) {
  const Folder folder;
  const std::string help = shoal(folder, {"--help-all"}).out;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = shoal(folder, {"completion", shell}).out;
    for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
      const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 2);
      const std::string flag = help.substr(at + 2, end - at - 2);
      if (flag.empty()) continue;
      EXPECT_THAT(script, HasSubstr(shell == "fish" ? "-l " + flag : "--" + flag));
    }
  }
}

TEST(Completion, a_disk_that_is_full_is_told) {
  const Folder folder;
  folder.write("ask.sh", std::string(SHOAL_PROGRAM) + " completion bash 2>&1 > /dev/full");
  FILE* const bash = popen(("bash " + (folder.path() / "ask.sh").string()).c_str(), "r");
  std::array<char, 200> line{};
  EXPECT_NE(fgets(line.data(), line.size(), bash), nullptr);
  EXPECT_STREQ(line.data(), "stdout: cannot be written: No space left on device\n");
  EXPECT_EQ(WEXITSTATUS(pclose(bash)), 1);
}

TEST(Completion, another_shell_is_refused_in_one_line) {
  const Folder folder;
  const auto said = shoal(folder, {"completion", "csh"});
  EXPECT_EQ(said.status, 2);
  EXPECT_EQ(said.err, "shoal completion: there is no completion for csh (bash, zsh or fish)\n");
}

TEST(Manual, a_page_names_flags_twins_and_verbs) {
  const Folder folder;
  const auto page = shoal(folder, {"manual", "lab"});
  EXPECT_EQ(page.status, 0);
  EXPECT_THAT(page.out, HasSubstr(".TH shoal\\-lab 1"));
  EXPECT_THAT(page.out, HasSubstr("\\fB\\-\\-rate\\fR \\fIvalue\\fR"));
  EXPECT_THAT(page.out, HasSubstr("\\fBSHOAL_RATE\\fR"));
  EXPECT_THAT(page.out, HasSubstr(".SS shoal lab exec"));
  EXPECT_EQ(shoal(folder, {"manual", "nothing"}).status, 2);
}

TEST(Manual, pages_of_all_commands_go_into_a_folder) {
  const Folder folder;
  EXPECT_EQ(shoal(folder, {"manual", "--into", (folder.path() / "man1").string()}).status, 0);
  for (const char* name : {"shoal", "shoal-run", "shoal-train", "shoal-lab"})
    EXPECT_THAT(read_file(folder.path() / "man1" / (std::string(name) + ".1")), HasSubstr(".SH SYNOPSIS"));
  folder.write("file", "");
  EXPECT_EQ(shoal(folder, {"manual", "--into", (folder.path() / "file").string()}).status, 1);
}

}  // namespace
}  // namespace shoal::app::test
