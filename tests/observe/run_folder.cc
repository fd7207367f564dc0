// A run's folder: its name, its files, and what happens when they cannot be written.
#include "shoal/observe/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "shoal/core/error.h"
#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

namespace fs = std::filesystem;

TEST(RunFolder, is_named_after_time_and_run) {
  const OwnFolder own("named");
  const RunFolder first = RunFolder::create(own.path() / "runs", "fashion", "--name"),
                  second = RunFolder::create(own.path() / "runs", "fashion", "--name");
  EXPECT_TRUE(std::regex_match(first.name(), std::regex("[0-9]{8}T[0-9]{6}Z-fashion"))) << first.name();
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(fs::is_directory(first.path() / "logs"));
  EXPECT_EQ(RunFolder::open(first.path() / "").name(), first.name());
}

TEST(RunFolder, refuses_names_that_are_paths) {
  const OwnFolder own("refuses");
  for (const std::string& name : {std::string(), std::string("../x"), std::string("a b"), std::string(65, 'a')}) {
    try {
      RunFolder::create(own.path(), name, "--name");
      FAIL() << "made " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                "--name: '" + name + "' is no name for a run (1 to 64 letters, digits, dots, dashes and underscores)");
    }
  }
  try {
    RunFolder::open(own.path() / "none");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (own.path() / "none").string() + ": is not the folder of a run (they are under runs/)");
  }
}

TEST(RunFolder, makes_a_name_of_any_text) {
  EXPECT_EQ(RunFolder::fitting("train-2.b_c"), "train-2.b_c");
  EXPECT_EQ(RunFolder::fitting("a b/c"), "a_b_c");
  EXPECT_EQ(RunFolder::fitting(std::string(65, 'a')), std::string(64, 'a'));
}

TEST(RunFolder, finds_event_files_by_rank) {
  const OwnFolder own("finds");
  const RunFolder folder = RunFolder::open(own.path());
  for (const char* file : {"events-10.jsonl", "events-2.jsonl", "events-.jsonl", "events-x.jsonl", "events.jsonl"}) {
    std::ofstream(own.path() / file) << "x";
  }
  EXPECT_EQ(folder.event_files(), (std::vector<fs::path>{folder.events_of(2), folder.events_of(10)}));
}

TEST(RunFolder, writes_and_reads_small_files) {
  const OwnFolder own("files");
  const RunFolder folder = RunFolder::open(own.path());
  folder.write("run.json", "new");
  EXPECT_EQ(folder.read("run.json", 100), "new");
  EXPECT_EQ(folder.read("none.json", 100), std::nullopt);
  EXPECT_THROW(folder.read("run.json", 2), Error);
}

}  // namespace
}  // namespace shoal::observe
