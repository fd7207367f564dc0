// `shoal metric` as people call it: on members, into a folder and out of it; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

// The first column tells two classes apart; by the second, which is loud, the nearest two are of the other class.
std::string classes_near_each_other() {
  std::string text;
  for (int i = 0; i < 120; ++i) text += std::to_string(i % 2) + " 1:" + std::to_string(i % 2) + " 2:" + std::to_string(i * 7 % 11 * 30 + i * 0.085) + "\n";
  return text;
}

TEST(metric, members_learn_it_go_on_and_map_samples) {
  const Folder folder;
  folder.write("s.txt", classes_near_each_other());
  const std::vector<std::string> words{"run", "-n", "3", "--", SHOAL_PROGRAM, "metric", "train", "s.txt", "--dimensions", "1", "--batch", "20"};
  const auto train = [&](const char* output, const char* epochs, bool resume) { return trained_model(folder, words, output, epochs, resume); };
  const auto whole = train("whole", "40", false);
  train("half", "20", false);
  EXPECT_EQ(train("half", "40", true), whole);
  folder.write("ask.txt", "1 1:1 2:3\n");
  EXPECT_THAT(shoal(folder, {"metric", "predict", "ask.txt", "--model", "whole"}).out, testing::MatchesRegex("1 1:[-0-9.e]+\n"));
  const auto figures = nlohmann::json::parse(shoal(folder, {"metric", "evaluate", "s.txt", "--model", "whole", "--json"}).out);
  EXPECT_EQ(figures.at("rows"), 120);
  EXPECT_EQ(figures.at("Euclidean neighbours"), 0);
  EXPECT_GT(figures.at("neighbours"), 0.5);
  folder.write("t.txt", "0 1:0 2:3\n1 1:1 2:3\n1 1:1 2:5\n");
  EXPECT_THAT(shoal(folder, {"metric", "evaluate", "t.txt", "--model", "whole", "--among", "s.txt"}).out,
              testing::HasSubstr("of 3 samples: the 3 nearest of 120 vote for the right class "));
}

TEST(metric, a_mistake_is_one_line) {
  const Folder folder;
  folder.write("s.txt", classes_near_each_other());
  const auto outcome = shoal(folder, {"metric", "train", "s.txt", "--dimensions", "0"});
  EXPECT_EQ(outcome.err, "dimensions: 0 is not between 1 and 65536\n");
  EXPECT_EQ(outcome.status, 2);
}

}  // namespace
}  // namespace shoal::app::test
