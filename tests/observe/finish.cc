// From recorded files to everything that a run leaves behind.
#include "shoal/observe/finish.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "shoal/core/error.h"
#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

// Each member's events as its recorder would have written them.
void write_files(const RunFolder& folder, const RunEvents& run) {
  for (const RankEvents& rank : run.ranks) {
    FileHeader header;
    header.authors = {rank.who};
    header.authors[0].unix_minus_steady_ns = run.unix_begin_ns;
    std::string text = to_line(header);
    for (const Event& event : rank.events) append_line(text, event, run.name_of(event));
    std::ofstream(folder.events_of(rank.who.rank)) << text;
  }
}

TEST(Finish, leaves_every_file_of_a_run_and_nothing_else) {
  const OwnFolder own("finish");
  const RunFolder folder = RunFolder::open(own.path());
  write_files(folder, two_members());
  folder.write("plan.json", exchange::to_json(their_plan()));
  const Finished finished = finish_run(folder);
  EXPECT_NEAR(finished.account.mean.waiting, 0.020, 1e-12);
  EXPECT_EQ(finished.account.tensors[0].way, "ring");
  EXPECT_TRUE(finished.account.remarks.empty());
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(own.path())) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{"events.jsonl", "plan.json", "report.html", "run.json", "trace.json.gz"}));
  const auto run = nlohmann::json::parse(*folder.read("run.json", 1 << 20));
  EXPECT_EQ(run["began"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(run["steps"], 2);
  EXPECT_EQ(run["members"][1]["host"], "hen");
}

TEST(Finish, a_second_time_gives_the_same) {
  const OwnFolder own("again");
  const RunFolder folder = RunFolder::open(own.path());
  write_files(folder, two_members());
  finish_run(folder);
  const auto events = folder.read("events.jsonl", 1 << 20), report = folder.read("report.html", 1 << 24);
  finish_run(folder);
  EXPECT_EQ(folder.read("events.jsonl", 1 << 20), events);
  EXPECT_EQ(folder.read("report.html", 1 << 24), report);
}

TEST(Finish, keeps_a_run_json_that_is_there) {
  const OwnFolder own("kept");
  const RunFolder folder = RunFolder::open(own.path());
  write_files(folder, two_members());
  folder.write("run.json", "{}");
  finish_run(folder);
  EXPECT_EQ(folder.read("run.json", 100), "{}");
}

TEST(Finish, a_damaged_plan_costs_a_remark) {
  const OwnFolder own("plan");
  const RunFolder folder = RunFolder::open(own.path());
  write_files(folder, two_members());
  folder.write("plan.json", "{");
  EXPECT_EQ(finish_run(folder).account.remarks,
            std::vector<std::string>{"plan.json: is not JSON (is this a plan.json of a Shoal run?)"});
}

TEST(Finish, the_account_of_a_run_under_way_changes_nothing) {
  const OwnFolder own("under-way");
  const RunFolder folder = RunFolder::open(own.path());
  write_files(folder, two_members());
  EXPECT_EQ(account_of(folder).steps, 2);
  EXPECT_EQ(folder.event_files().size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(own.path() / "report.html"));
}

}  // namespace
}  // namespace shoal::observe
