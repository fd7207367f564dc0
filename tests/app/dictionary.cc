// `shoal dictionary` as people call it: on members, into a folder and out of it; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

// Multiples of two directions, none of both.
std::string sparse_samples() {
  std::string text;
  for (int i = 1; i <= 60; ++i) text += i % 2 == 0 ? "1 1:" + std::to_string(3 * i) + " 2:" + std::to_string(4 * i) + "\n" : "2 3:" + std::to_string(5 * i) + "\n";
  return text;
}

TEST(dictionary, members_learn_it_go_on_and_code_samples) {
  const Folder folder;
  folder.write("s.txt", sparse_samples());
  const std::vector<std::string> words{"run", "-n", "3", "--", SHOAL_PROGRAM, "dictionary", "train", "s.txt", "--atoms", "2", "--l1", "0.5"};
  const auto train = [&](const char* output, const char* epochs, bool resume) { return trained_model(folder, words, output, epochs, resume); };
  const auto whole = train("whole", "6", false);
  train("half", "3", false);
  EXPECT_EQ(train("half", "6", true), whole);
  folder.write("ask.txt", "7 1:30 2:40\n8 3:10\n");
  EXPECT_THAT(shoal(folder, {"dictionary", "predict", "ask.txt", "--model", "whole"}).out, testing::MatchesRegex("7 [12]:-?[0-9.]+\n8 [12]:-?[0-9.]+\n"));
  const auto figures = nlohmann::json::parse(shoal(folder, {"dictionary", "evaluate", "s.txt", "--model", "whole", "--json"}).out);
  EXPECT_NEAR(figures.at("squared error"), 0.25, 0.01) << "what l1 takes off each code";
  EXPECT_EQ(figures.at("atoms a sample"), 1);
}

TEST(dictionary, a_mistake_is_one_line) {
  const Folder folder;
  folder.write("s.txt", sparse_samples());
  const auto outcome = shoal(folder, {"dictionary", "train", "s.txt", "--atoms", "0"});
  EXPECT_EQ(outcome.err, "atoms: 0 is not between 1 and 65536\n");
  EXPECT_EQ(outcome.status, 2);
}

}  // namespace
}  // namespace shoal::app::test
