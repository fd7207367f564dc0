// `shoal factorize` as people call it: alone and on members, into a folder and out of it, killed and gone on with; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

// 80 users x 40 items of rank 1 and a mean, half of them known.
std::string ratings() {
  std::string text = "user,item,rating\n";
  for (int user = 0; user < 80; ++user) {
    for (int item = user % 2; item < 40; item += 2) {
      const double value = 3 + (user % 5 - 2) * (item % 7 - 3) / 4.0;
      text += "u" + std::to_string(user) + ",\"item " + std::to_string(item) + "\"," + std::to_string(value) + "\n";
    }
  }
  return text;
}

const std::vector<std::string> kTrain{"factorize", "train", "r.csv", "--factors", "4", "--l2", "0.01", "--batch", "100"};
std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
std::vector<std::string> on_members(int members, const std::vector<std::string>& words) {
  return with({"run", "-n", std::to_string(members), "--", SHOAL_PROGRAM}, words);
}
std::string model(const Folder& folder, const std::string& name) { return read_file(folder.path() / name / "model.safetensors"); }

TEST(factorize, learns_predicts_and_evaluates) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const auto trained = shoal(folder, with(kTrain, {"--epochs", "40"}));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, StartsWith("read 1,600 ratings of 80 users and 40 items from r.csv, fields between ','"));
  EXPECT_THAT(trained.out, HasSubstr("\nepoch 40 of 40: training RMSE "));
  EXPECT_THAT(trained.out, testing::EndsWith("\nmodel in r.model\n"));
  const auto last = read_file(folder.path() / "r.model/metrics.jsonl");
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 40);

  folder.write("ask.csv", "u3,\"item 3\"\nu3,\"item 5\"\nnobody,\"item 3\"\n");
  const auto told = shoal(folder, {"factorize", "predict", "ask.csv", "--model", "r.model"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(told.err, "1 of 3 have a user or an item that the model does not know: the mean stands for them\n");
  std::istringstream lines(told.out);
  for (const auto& [user, item, expected] : {std::tuple("u3", "item 3", 3.0), std::tuple("u3", "item 5", 3.5), std::tuple("nobody", "item 3", 3.0)}) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_THAT(line, StartsWith(std::string(user) + "\t" + item + "\t"));
    EXPECT_NEAR(std::stod(line.substr(line.rfind('\t') + 1)), expected, 0.2);
  }

  const auto judged = shoal(folder, {"factorize", "evaluate", "r.csv", "--model", "r.model", "--json"});
  const auto figures = nlohmann::json::parse(judged.out);
  EXPECT_EQ(figures.at("ratings"), 1600);
  EXPECT_EQ(figures.at("unknown"), 0);
  EXPECT_LT(figures.at("RMSE"), 0.2);
}

TEST(factorize, ratings_on_disk_learn_as_well_and_go_on) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const auto error = [&](const std::string& output, const std::string& epochs, const std::vector<std::string>& more) {
    const auto told = shoal(folder, on_members(2, with(with(kTrain, {"--output", output, "--epochs", epochs}), more)));
    EXPECT_EQ(told.status, 0) << told.err;
    const std::string lines = read_file(folder.path() / output / "metrics.jsonl");
    return nlohmann::json::parse(lines.substr(lines.rfind('\n', lines.size() - 2) + 1)).at("held-out RMSE").get<double>();
  };
  const double memory = error("memory", "30", {}), disk = error("disk", "30", {"--on-disk"});
  EXPECT_NEAR(disk, memory, 0.1);
  error("half", "15", {"--on-disk"});
  EXPECT_EQ(error("half", "30", {"--on-disk", "--resume"}), disk);
  EXPECT_EQ(model(folder, "half"), model(folder, "disk"));
}

TEST(factorize, on_members_it_has_the_same_bits_each_time) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const auto one = shoal(folder, on_members(3, with(kTrain, {"--output", "one"}))), other = shoal(folder, on_members(3, with(kTrain, {"--output", "other"})));
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(one.out, HasSubstr("[0] epoch 10 of 10: "));
  EXPECT_THAT(one.out, testing::Not(HasSubstr("[1]"))) << "rank 0 speaks";
  EXPECT_EQ(model(folder, "one"), model(folder, "other"));
  const auto stale = shoal(folder, on_members(3, with(kTrain, {"--output", "stale", "--consistency", "ssp:3"})));
  EXPECT_EQ(stale.status, 0) << stale.err;
  EXPECT_EQ(model(folder, "stale").size(), model(folder, "one").size());
}

TEST(factorize, reads_a_pipe) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const auto outcome = Program(folder, {"/bin/sh", "-c", std::string("cat r.csv | ") + SHOAL_PROGRAM + " factorize train /dev/stdin --output m"}).wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("read 1,600 ratings of 80 users and 40 items from stdin"));
}

// Two kinds of documents with words of their own: a count that is not there is 0, so each kind has a factor, and of words of the other kind it says 0.
TEST(factorize, a_whole_matrix_is_learnt_gone_on_with_and_used) {
  const Folder folder;
  std::string text;
  for (int document = 0; document < 30; ++document) {
    for (int word = document % 2; word < 20; word += 2) text += "d" + std::to_string(document) + ",w" + std::to_string(word) + "," + std::to_string(1 + document % 3) + "\n";
  }
  folder.write("r.csv", text);
  const std::vector<std::string> train{"factorize", "train", "r.csv", "--missing", "zero", "--non-negative", "--factors", "2", "--l2", "0", "--output"};
  const auto whole = shoal(folder, on_members(3, with(train, {"whole", "--epochs", "20"})));
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out, testing::Not(HasSubstr("held-out"))) << "a number that is held out would be learnt as 0";
  ASSERT_EQ(shoal(folder, on_members(3, with(train, {"half", "--epochs", "9"}))).status, 0);
  ASSERT_EQ(shoal(folder, on_members(3, with(train, {"half", "--epochs", "20", "--resume"}))).status, 0);
  EXPECT_EQ(model(folder, "half"), model(folder, "whole"));

  const auto judged = shoal(folder, {"factorize", "evaluate", "r.csv", "--model", "whole", "--json"});
  EXPECT_LT(nlohmann::json::parse(judged.out).at("RMSE"), 1e-3);
  folder.write("ask.csv", "d3,w5\nd3,w4\nd3,nothing\n");
  const auto told = shoal(folder, {"factorize", "predict", "ask.csv", "--model", "whole"});
  std::istringstream lines(told.out);
  for (const double expected : {1.0, 0.0, 1.0}) {  // of what is not known the mean of the whole matrix
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_NEAR(std::stod(line.substr(line.rfind('\t') + 1)), expected, 1e-3) << line;
  }
}

// It is killed after it has kept its third epoch at the earliest, wherever it then is.
TEST(factorize, killed_and_gone_on_with_it_ends_with_the_bits_of_a_run_that_was_not) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const std::vector<std::string> flags{"--epochs", "300", "--output"};
  ASSERT_EQ(shoal(folder, with(with(kTrain, flags), {"whole"})).status, 0);
  {
    Program program(folder, with(with({SHOAL_PROGRAM}, kTrain), with(flags, {"killed"})));
    program.lines(4);
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait().status, 128 + SIGKILL);
  }
  const auto rest = shoal(folder, with(with(kTrain, flags), {"killed", "--resume"}));
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("\ngoes on after epoch "));
  EXPECT_EQ(model(folder, "killed"), model(folder, "whole"));
  const auto metrics = read_file(folder.path() / "killed/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 300);
}

TEST(factorize, a_mistake_is_one_line) {
  const Folder folder;
  folder.write("r.csv", ratings());
  folder.write("bad.csv", "user,item,rating\na,b,1\nc,d\ne,f,3\ng,h,3\ni,j,3\n");
  folder.write("below.csv", "a,b,1\nc,d,-2\n");
  ASSERT_EQ(shoal(folder, with(kTrain, {"--epochs", "1"})).status, 0);
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"factorize", "train", "none.csv"}, "none.csv: cannot be opened: No such file or directory\n"},
      {{"factorize", "train", "bad.csv"}, "bad.csv:3: has fewer than 3 fields (a line is: row, column, value, between ',')\n"},
      {{"factorize", "train", "below.csv", "--non-negative", "--test-share", "0"}, "non-negative: the data has a value below zero\n"},
      {{"factorize", "train", "r.csv"}, "r.model: holds a model already (--resume goes on from it; or name another folder with --output)\n"},
      {with(kTrain, {"--resume", "--seed", "2"}), "r.model: seed is 1 in the model, 2 here (go on with the model's data and options, or begin another model in another folder)\n"},
      {{"factorize", "train", "r.csv", "--step", "0"}, "--step: 0 is not above zero\n"},
      {{"factorize", "train", "r.csv", "--step", "1e6", "--output", "m"}, "step: numbers grew without bound in epoch 1 (take a smaller one, or with several members a smaller batch)\n"},
      {{"factorize", "train", "r.csv", "--test-share", "1"}, "--test-share: 1 is not in [0, 1)\n"},
      {{"factorize", "train", "r.csv", "--consistency", "lazy"}, "consistency: "},
      {{"factorize", "train", "r.csv", "--schedule", "cosine"}, "--schedule: \"cosine\" is none (sqrt or constant)\n"},
      {with(kTrain, {"--missing", "zero", "--non-negative"}), "--batch: a whole matrix is learnt without steps (leave it out, or --missing zero)\n"},
      {{"factorize", "train", "r.csv", "--missing", "zero", "--non-negative", "--step", "0.1"}, "--step: a whole matrix is learnt without steps (leave it out, or --missing zero)\n"},
      {{"factorize", "train", "r.csv", "--missing", "zero", "--output", "m"}, "missing: a whole matrix is learnt by non-negative factors alone (ask for these, too)\n"},
      {{"factorize", "train", "below.csv", "--missing", "zero", "--non-negative"}, "non-negative: the data has a value below zero\n"},
      {{"factorize", "train", "r.csv", "--missing", "one"}, "missing: \"one\" is none (unknown or zero)\n"},
      {{"factorize", "predict", "r.csv", "--model", "none"}, "none: holds no model (shoal factorize train makes one)\n"},
      {{"factorize", "evaluate", "none.csv", "--model", "r.model"}, "none.csv: cannot be opened: No such file or directory\n"},
  };
  for (const auto& mistake : mistakes) {
    const auto outcome = shoal(folder, mistake.words);
    EXPECT_THAT(outcome.err, StartsWith(mistake.line));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.status, 2) << mistake.line;
  }
}

// All members have the same line; the launcher's last words are it.
TEST(factorize, a_mistake_on_members_is_told_once_more_by_the_launcher) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const auto outcome = shoal(folder, on_members(3, {"factorize", "train", "r.csv", "--step", "1e6"}));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, testing::EndsWith("exit status 2: step: numbers grew without bound in epoch 1 (take a smaller one, or with several members a smaller batch)\n"));
}

TEST(factorize, members_that_read_different_files_are_told_so_before_they_learn) {
  const Folder folder;
  folder.write("r0.csv", ratings());
  folder.write("r1.csv", ratings() + "u1,item 0,5\n");
  const auto outcome = shoal(folder, run_script(2, std::string("exec ") + SHOAL_PROGRAM + " factorize train r$SHOAL_RANK.csv --test-share 0 --output m"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, testing::ContainsRegex("exit status 2: join: rank [01] \\(.*\\) has data \"[0-9a-f]+\", rank [01] \\(.*\\) has data"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "m/model.safetensors"));
}

TEST(factorize, a_member_that_is_lost_ends_the_others_with_its_name) {
  const Folder folder;
  folder.write("r.csv", ratings());
  const auto outcome = shoal(folder, run_script(3, std::string(SHOAL_PROGRAM) + " factorize train r.csv --epochs 100000 & " +
                                                       "if [ $SHOAL_RANK = 1 ]; then while [ ! -e r.model/model.safetensors ]; do sleep 0.02; done; kill -9 $!; fi; wait $!"));
  EXPECT_EQ(outcome.status, 128 + SIGKILL) << outcome.err;  // its shell's
  EXPECT_THAT(outcome.err, HasSubstr("shoal: ranks 0, 2 ended with: rank 1 ("));
  EXPECT_THAT(read_file(folder.path() / "r.model/metrics.jsonl"), StartsWith("{\"epoch\":1,"));
}

}  // namespace
}  // namespace shoal::app::test
