// `shoal topics train` where something is short: members with fewer threads and less memory than others, a full disk, memory, and a killed process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/model_files.h"
#include "tests/app/program.h"
#include "tests/sanitizer.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class TopicsLimits : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int d = 0; d < kDocuments; ++d) text += d % 2 == 0 ? "tea pot cup milk tea\n" : "sail boat wind deck boat\n";
    folder_.write("t.txt", text);
  }
  // What sh is told, with the program as $0; "ulimit -f N" makes files of N blocks at most, as a full disk would: then write() fails.
  Outcome sh(const std::string& script) const {
    return shoal(folder_, {"run", "-n", "1", "--", "sh", "-c", "trap '' XFSZ; " + script, SHOAL_PROGRAM});
  }
  // The model is there and has each token once, in its words' rows and its documents'.
  void expect_whole(const std::string& name, std::size_t documents = kDocuments) const {
    const learn::ModelFolder folder(folder_.path() / name);
    const learn::topic::Model model = learn::topic::read_model(folder);
    EXPECT_EQ(std::accumulate(model.totals.begin(), model.totals.end(), std::uint64_t{0}), 5 * documents);
    const auto rows = learn::topic::read_document_rows(folder, model);
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->size(), documents);
  }
  std::vector<std::string> names_in(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path() / name)) names.push_back(entry.path().filename().string());
    return names;
  }

  static constexpr int kDocuments = 90;
  const Folder folder_;
};

TEST_F(TopicsLimits, members_with_other_threads_have_other_parts) {
  const std::string train = "exec \"$0\" topics train t.txt -k 3 --sweeps 20 --test-share 0 --threads ";
  const auto trained = [&](const std::string& more) {
    return shoal(folder_, {"run", "-n", "2", "--", "sh", "-c",
                           "if [ $SHOAL_RANK = 0 ]; then " + train + "2 " + more + "; else " + train + "1 " + more + "; fi",
                           SHOAL_PROGRAM});
  };
  for (const std::string name : {"one", "other"}) {
    const Outcome told = trained("--output " + name);
    ASSERT_EQ(told.status, 0) << told.err;
    EXPECT_THAT(told.out, HasSubstr("members have 2, 1 threads; of each 3 documents they have 2, 1\n"));
    EXPECT_THAT(told.out, HasSubstr("--parallel rotation: at most 0.0 MB of rows a sweep from each member, 0.0 MB with data, so they are as quick, and "
                                    "this one takes less memory; links of "));
    EXPECT_THAT(told.out, HasSubstr(" MB of rows sent a sweep, "));
    expect_whole(name);
  }
  EXPECT_EQ(read_file(folder_.path() / "one/model.safetensors"), read_file(folder_.path() / "other/model.safetensors"));
  EXPECT_EQ(read_file(folder_.path() / "one/doc_topics.tsv"), read_file(folder_.path() / "other/doc_topics.tsv"));
  const learn::Json config = learn::ModelFolder(folder_.path() / "one").config("topics");
  EXPECT_EQ(config.at("threads"), learn::Json({2, 1}));
  EXPECT_EQ(config.at("dealt"), learn::Json({2, 1}));
  const Outcome data = trained("--output data --parallel data");
  ASSERT_EQ(data.status, 0) << data.err;
  EXPECT_THAT(data.out, HasSubstr("--parallel data: at most 0.0 MB of rows a sweep from each member, 0.0 MB with rotation, as asked; links of "));
  expect_whole("data");
}

TEST_F(TopicsLimits, members_that_are_slower_have_less) {
  const auto trained = [&](const std::string& speed, const std::string& folder) {
    const std::string train = "exec \"$0\" topics train t.txt -k 3 --sweeps 2 --threads 1 --output " + folder + " --speed ";
    return shoal(folder_, {"run", "-n", "2", "--", "/bin/sh", "-c", "case $SHOAL_RANK in 0) " + train + "3;; *) " + train + speed + ";; esac", SHOAL_PROGRAM});
  };
  const Outcome told = trained("1.5", "m");
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("members have 1, 1 threads with a --speed of 1, 0.5; of each 3 documents they have 2, 1\n"));
  expect_whole("m");
  EXPECT_EQ(learn::ModelFolder(folder_.path() / "m").config("topics").at("speeds"), learn::Json({1.0, 0.5}));
  const Outcome unlike = trained("auto", "n");
  EXPECT_EQ(unlike.status, 2);
  EXPECT_THAT(unlike.err, HasSubstr("members say in different ways how quick they are"));
  const Outcome none = shoal(folder_, {"topics", "train", "t.txt", "--speed", "-1", "--output", "n"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--speed: \"-1\" is none"));
}

TEST_F(TopicsLimits, a_full_disk_leaves_no_half_model) {
  const Outcome told = sh("ulimit -f 2; \"$0\" topics train t.txt -k 3 --sweeps 3 --keep-every 0 --output m");
  EXPECT_NE(told.status, 0);
  EXPECT_THAT(told.err, HasSubstr("cannot be written: File too large"));
  EXPECT_THAT(names_in("m"), Not(testing::Contains("model.safetensors")));
  for (const std::string& name : names_in("m"))
    EXPECT_THAT(name, testing::AnyOf("config.json", "doc_topics.tsv", "doc_counts.safetensors")) << told.err;
  // With room the same folder takes the model.
  const Outcome again = shoal(folder_, {"topics", "train", "t.txt", "-k", "3", "--sweeps", "3", "--output", "m"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_whole("m");
}

// Who uses a model hears the same, and what was under the file's name stays.
TEST_F(TopicsLimits, a_full_disk_leaves_no_half_topics_of_documents) {
  ASSERT_EQ(shoal(folder_, {"topics", "train", "t.txt", "-k", "3", "--sweeps", "3", "--output", "m"}).status, 0);
  fs::create_directory(folder_.path() / "out");
  folder_.write("out/topics.tsv", "of before\n");
  const Outcome told = sh("ulimit -f 2; \"$0\" topics infer m t.txt --output out/topics.tsv");
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.err, HasSubstr("out/topics.tsv: cannot be written: File too large"));
  EXPECT_EQ(read_file(folder_.path() / "out/topics.tsv"), "of before\n");
  EXPECT_EQ(names_in("out"), std::vector<std::string>{"topics.tsv"});
  const Outcome printed = sh("\"$0\" topics infer m t.txt > /dev/full");
  EXPECT_EQ(printed.status, 1);
  EXPECT_THAT(printed.err, HasSubstr("stdout: cannot be written: No space left on device"));
}

TEST_F(TopicsLimits, a_full_disk_leaves_no_half_update) {
  ASSERT_EQ(
      shoal(folder_, {"topics", "train", "t.txt", "-k", "3", "--sweeps", "3", "--test-share", "0", "--output", "m"}).status, 0);
  const Outcome told = sh("ulimit -f 2; \"$0\" topics update m t.txt --sweeps 3 --output n");
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.err, HasSubstr("cannot be written: File too large"));
  EXPECT_THAT(names_in("n"), testing::IsSubsetOf({"config.json", "doc_topics.tsv", "doc_counts.safetensors"})) << told.err;
  expect_whole("m");
  const Outcome again = shoal(folder_, {"topics", "update", "m", "t.txt", "--sweeps", "3", "--output", "n"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_whole("n", 2 * kDocuments);
}

// What was kept before stays whole, and it is gone on from.
TEST_F(TopicsLimits, a_full_disk_leaves_no_half_stream) {
  folder_.write("v.txt", "tea\npot\ncup\nmilk\nsail\nboat\nwind\ndeck\n");
  const std::string stream = "topics train t.txt --method stream --vocab v.txt -k 60 --batch 10 --keep-every 3 --output s";
  const Outcome told = sh("ulimit -f 2; \"$0\" " + stream);
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.err, HasSubstr("cannot be written: File too large"));
  EXPECT_THAT(names_in("s"), testing::ElementsAre("config.json")) << told.err;
  const Outcome again = sh("exec \"$0\" " + stream);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(learn::ModelFolder(folder_.path() / "s").config("topics").at("documents"), kDocuments);
}

TEST_F(TopicsLimits, a_full_disk_leaves_no_half_checkpoint) {
  const Outcome told = sh("ulimit -f 2; \"$0\" topics train t.txt -k 3 --sweeps 3 --keep-every 1 --output m");
  EXPECT_NE(told.status, 0);
  EXPECT_THAT(told.err, HasSubstr("checkpoint/sweep-1.rank-0-of-1.safetensors: cannot be written: File too large"));
  EXPECT_TRUE(names_in("m/checkpoint").empty());
}

// Killed between two sweeps or amid one: whoever calls it again by hand goes on, on other members, too, with every token once.
TEST_F(TopicsLimits, a_killed_training_goes_on_by_hand) {
  const std::vector<std::string> train = {SHOAL_PROGRAM,  "topics", "train",        "t.txt", "-k",       "3",
                                          "--keep-every", "1",      "--test-share", "0",     "--output", "m"};
  for (int kill = 0; kill < 2; ++kill) {
    std::vector<std::string> words = train;
    words.insert(words.end(), {"--sweeps", "1000000", "--look-every", "1", "--json"});
    if (kill > 0) words.push_back("--resume");
    Program program(folder_, words);
    program.lines(5);
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait().status, 128 + SIGKILL);
  }
  const auto sweep = [&] {
    unsigned newest = 0;
    for (const std::string& name : names_in("m/checkpoint"))
      newest = std::max(newest, static_cast<unsigned>(std::stoul(name.substr(6))));
    return newest;
  };
  ASSERT_GE(sweep(), 4u);
  const std::string until = std::to_string(sweep() + 3);
  std::vector<std::string> words = {"run", "-n", "2", "--"};
  words.insert(words.end(), train.begin(), train.end());
  words.insert(words.end(), {"--sweeps", until, "--resume"});
  const Outcome told = shoal(folder_, words);
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("goes on after sweep "));
  expect_whole("m");
}

// What the process has to itself stays below what it was given, while documents lie on disk.
TEST_F(TopicsLimits, memory_is_obeyed) {
  std::string text;
  for (unsigned d = 0, word = 1; d < 40'000; ++d) {
    for (int i = 0; i < 150; ++i) {
      word = word * 1664525 + 1013904223;
      text += "w" + std::to_string((word >> 16) % 2000) + " ";
    }
    text += '\n';
  }
  folder_.write("long.txt", text);
  constexpr double given = 130e6;  // without it the process has 140 MB after the second sweep
  const Outcome told = shoal(folder_, {"topics", "train", "long.txt", "-k", "50", "--sweeps", "2", "--look-every", "1",
                                       "--keep-every", "1", "--threads", "2", "--memory", "130M", "--json", "--output", "m"});
  ASSERT_EQ(told.status, 0) << told.err;
  unsigned looks = 0;
  for (std::size_t at = told.out.find('{'); at != std::string::npos; at = told.out.find('{', told.out.find('\n', at))) {
    const auto look = nlohmann::json::parse(told.out.substr(at, told.out.find('\n', at) - at));
    if (!kAddressSanitizer) {  // which keeps what is freed, and shadows the rest: the process has more then than it asked for
      EXPECT_LT(look.at("memory_bytes").get<double>(), given);
    }
    EXPECT_LE(look.at("rows_bytes"), look.at("model_bytes"));
    ++looks;
  }
  EXPECT_EQ(looks, 2u);
  const Outcome little = shoal(folder_, {"topics", "train", "t.txt", "-k", "50", "--memory", "90M", "--output", "n"});
  EXPECT_EQ(little.status, 2);
  EXPECT_THAT(little.err, HasSubstr("90 MB of memory are too little: rank 0 needs "));
}

}  // namespace
}  // namespace shoal::app::test
