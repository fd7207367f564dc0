// `shoal linear` as people call it: alone and on members, into a folder and out of it; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Three classes with a column each, and one that says nothing.
std::string samples() {
  const int labels[] = {7, -2, 40};
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(labels[i % 3]) + " " + std::to_string(i % 3 + 1) + ":1 4:" + std::to_string(i % 10 / 10.0) + "\n";
  return text;
}

TEST(linear, learns_predicts_and_evaluates) {
  const Folder folder;
  folder.write("s.txt", samples());
  const auto trained = shoal(folder, {"linear", "train", "s.txt"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, StartsWith("read 300 samples of 4 columns with "));
  EXPECT_THAT(trained.out, HasSubstr("held-out accuracy 1.0000"));
  EXPECT_EQ(read_file(folder.path() / "s.model/classes.txt"), "-2\n7\n40\n");
  folder.write("ask.txt", "0 3:1\n0 1:1 900:5\n");
  const auto told = shoal(folder, {"linear", "predict", "ask.txt", "--model", "s.model"});
  EXPECT_THAT(told.out, testing::MatchesRegex("1\t40\t0\\.[0-9]+\n2\t7\t0\\.[0-9]+\n"));
  const auto figures = nlohmann::json::parse(shoal(folder, {"linear", "evaluate", "s.txt", "--model", "s.model", "--json"}).out);
  EXPECT_EQ(figures.at("accuracy"), 1);
  EXPECT_EQ(figures.at("unknown"), 0);
  const auto unknown = nlohmann::json::parse(shoal(folder, {"linear", "evaluate", "ask.txt", "--model", "s.model", "--json"}).out);
  EXPECT_EQ(unknown.at("accuracy"), 0);
  EXPECT_EQ(unknown.at("unknown"), 2);
}

TEST(linear, on_members_it_has_the_same_bits_each_time_and_goes_on) {
  const Folder folder;
  folder.write("s.txt", samples());
  const std::vector<std::string> words{"run", "-n", "3", "--", SHOAL_PROGRAM, "linear", "train", "s.txt", "--batch", "20"};
  const auto train = [&](const char* output, const char* epochs, bool resume) { return trained_model(folder, words, output, epochs, resume); };
  const auto whole = train("whole", "6", false);
  EXPECT_EQ(train("again", "6", false), whole);
  train("half", "3", false);
  EXPECT_EQ(train("half", "6", true), whole);
}

// One block: the order is another than in memory, the optimum is not.
TEST(linear, rows_on_disk_learn_the_same_and_go_on) {
  const Folder folder;
  folder.write("s.txt", samples());
  const auto train = [&](const std::string& output, const std::string& epochs, std::vector<std::string> more) {
    std::vector<std::string> words{"run", "-n", "2", "--", SHOAL_PROGRAM, "linear", "train", "s.txt", "--solver", "sdca", "--l2", "1e-3", "--gap", "0", "--output", output, "--epochs", epochs};
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(read_file(folder.path() / output / "metrics.jsonl"));
    nlohmann::json last;
    for (std::string line; std::getline(lines, line);) last = nlohmann::json::parse(line);
    return last.at("objective").get<double>();
  };
  const double memory = train("memory", "40", {});
  EXPECT_NEAR(train("disk", "40", {"--on-disk"}), memory, 1e-6);
  train("half", "20", {"--on-disk"});
  EXPECT_NEAR(train("half", "40", {"--on-disk", "--resume"}), memory, 1e-6);
  EXPECT_EQ(read_file(folder.path() / "half/model.safetensors"), read_file(folder.path() / "disk/model.safetensors"));
}

TEST(linear, sdca_ends_when_the_gap_is_small_and_goes_on) {
  const Folder folder;
  folder.write("s.txt", samples());
  const auto train = [&](const std::string& output, const std::string& epochs, bool resume) {
    std::vector<std::string> words{"linear", "train", "s.txt", "--solver", "sdca", "--l2", "1e-3", "--json", "--output", output, "--epochs", epochs};
    if (resume) words.push_back("--resume");
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(read_file(folder.path() / output / "metrics.jsonl"));
    std::vector<double> gaps;
    for (std::string line; std::getline(lines, line);) gaps.push_back(nlohmann::json::parse(line).at("duality gap"));
    return gaps;
  };
  const auto whole = train("whole", "100", false);
  ASSERT_GT(whole.size(), 2u);
  EXPECT_LT(whole.size(), 100u);
  EXPECT_LE(whole.back(), 1e-4);
  EXPECT_GT(whole[whole.size() - 2], 1e-4);
  train("half", "2", false);
  EXPECT_EQ(train("half", "100", true), whole);
  EXPECT_EQ(read_file(folder.path() / "half/model.safetensors"), read_file(folder.path() / "whole/model.safetensors"));
  EXPECT_EQ(nlohmann::json::parse(shoal(folder, {"linear", "evaluate", "s.txt", "--model", "whole", "--json"}).out).at("accuracy"), 1);
}

TEST(linear, a_mistake_is_one_line) {
  const Folder folder;
  folder.write("s.txt", samples());
  folder.write("one.txt", "1 1:1\n1 2:1\n");
  folder.write("r.csv", "a,b,1\nc,d,2\n");
  ASSERT_EQ(shoal(folder, {"factorize", "train", "r.csv", "--test-share", "0"}).status, 0);
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"linear", "train", "none.txt"}, "none.txt: cannot be opened: No such file or directory\n"},
      {{"linear", "train", "one.txt", "--test-share", "0"}, "one.txt: all rows to learn from have one label (there is nothing to tell apart)\n"},
      {{"linear", "train", "r.csv"}, "r.csv:1: "},
      {{"linear", "train", "s.txt", "--l2", "-1"}, "--l2: -1 is below zero\n"},
      {{"linear", "train", "s.txt", "--solver", "newton"}, "--solver: \"newton\" is none (sgd or sdca)\n"},
      {{"linear", "train", "s.txt", "--solver", "sdca", "--l2", "0"}, "l2: must be above zero, for there is no dual without it\n"},
      {{"linear", "train", "s.txt", "--solver", "sdca", "--consistency", "ssp:1"}, "--consistency: sdca's steps are safe under bsp alone (leave it out, or take --solver sgd)\n"},
      {{"linear", "predict", "s.txt", "--model", "r.model"}, "r.model: holds a model of shoal factorize (a model of shoal linear is needed)\n"},
  };
  for (const auto& mistake : mistakes) {
    const auto outcome = shoal(folder, mistake.words);
    EXPECT_THAT(outcome.err, StartsWith(mistake.line));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.status, 2) << mistake.line;
  }
}

}  // namespace
}  // namespace shoal::app::test
