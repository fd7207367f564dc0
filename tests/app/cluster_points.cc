// `shoal cluster-points` as people call it: alone and on members, into a folder and out of it; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

std::string clustered_samples() {
  std::string text;
  for (int i = 0; i < 90; ++i) text += "0 1:" + std::to_string(10 * (i % 3)) + " 2:" + std::to_string(i % 5 / 10.0) + "\n";
  return text;
}

TEST(cluster_points, members_find_the_same_clusters_and_go_on) {
  const Folder folder;
  folder.write("s.txt", clustered_samples());
  const auto train = [&](std::vector<std::string> words, const char* output, const char* epochs, bool resume) {
    words.insert(words.end(), {"cluster-points", "train", "s.txt", "--clusters", "3"});
    return trained_model(folder, words, output, epochs, resume);
  };
  const std::vector<std::string> members{"run", "-n", "3", "--", SHOAL_PROGRAM};
  const auto alone = train({}, "alone", "100", false);
  EXPECT_EQ(train(members, "members", "100", false), alone);
  train(members, "half", "1", false);
  EXPECT_EQ(train(members, "half", "100", true), alone);

  // Begun with the centers at which it came to rest, it has nothing to do.
  auto again = trained_model(folder, {"cluster-points", "train", "s.txt", "--clusters", "3", "--start", "alone"}, "again", "100", false);
  again.replace(again.find(R"("epochs":"1")"), 12, R"("epochs":"2")");
  EXPECT_EQ(again, alone);

  const auto told = shoal(folder, {"cluster-points", "predict", "s.txt", "--model", "alone"});
  EXPECT_EQ(std::count(told.out.begin(), told.out.end(), '\n'), 90);
  const auto figures = nlohmann::json::parse(shoal(folder, {"cluster-points", "evaluate", "s.txt", "--model", "alone", "--json"}).out);
  EXPECT_LT(figures.at("mean squared distance"), 0.03);
  EXPECT_EQ(figures.at("in clusters").size(), 3u);
}

TEST(cluster_points, a_mistake_is_one_line) {
  const Folder folder;
  folder.write("s.txt", clustered_samples());
  trained_model(folder, {"cluster-points", "train", "s.txt", "--clusters", "3"}, "three", "1", false);
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"cluster-points", "train", "s.txt", "--clusters", "100", "--test-share", "0"}, "clusters: 100 are more than the 90 samples\n"},
      {{"cluster-points", "train", "none"}, "none: cannot be opened: No such file or directory\n"},
      {{"cluster-points", "train", "s.txt", "--start", "none"}, "none: holds no model (shoal cluster-points train makes one)\n"},
      {{"cluster-points", "train", "s.txt", "--clusters", "4", "--start", "three", "--output", "four"},
       "start: the model has no tensor centers of 4 x 2 (take one that learnt from such data with the same options)\n"},
      {{"cluster-points", "predict", "s.txt", "--model", "none"}, "none: holds no model (shoal cluster-points train makes one)\n"},
  };
  for (const auto& mistake : mistakes) {
    const auto outcome = shoal(folder, mistake.words);
    EXPECT_EQ(outcome.err, mistake.line);
    EXPECT_EQ(outcome.status, 2) << mistake.line;
  }
}

}  // namespace
}  // namespace shoal::app::test
