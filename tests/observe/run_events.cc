// Members' files become one run on one axis; damaged files cost one line of remark each.
#include "shoal/observe/run_events.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "shoal/core/error.h"
#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

void write(const RunFolder& folder, int rank, const std::string& boot, std::int64_t offset, const std::string& lines) {
  FileHeader header;
  header.authors = {{rank, 2, "host", boot, 1, offset}};
  std::ofstream(folder.events_of(rank)) << to_line(header) << lines;
}

std::int64_t begin_of(const RunEvents& run, std::size_t rank) {
  return run.ranks[rank].events.at(0).begin.time_since_epoch().count();
}

const std::string kAt100 = "{\"kind\":\"forward\",\"begin\":100,\"end\":110}\n";
const std::string kAt300 = "{\"kind\":\"forward\",\"begin\":300,\"end\":310}\n";

TEST(RunEvents, clocks_of_two_machines_meet_in_unix_time) {
  const OwnFolder own("two");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 1000, kAt100);  // unix 1100
  write(folder, 1, "b", 850, kAt300);   // unix 1150
  const RunEvents run = read_run(folder);
  EXPECT_EQ(run.unix_begin_ns, 1100);
  EXPECT_EQ(begin_of(run, 0), 0);
  EXPECT_EQ(begin_of(run, 1), 50);
  EXPECT_EQ(run.clocks, "Clocks of 2 machines are aligned through unix time: as exact as their wall clocks agree.");
}

// Offsets measured at different moments differ by microseconds; the clock itself is the same.
TEST(RunEvents, members_of_one_machine_share_its_clock_exactly) {
  const OwnFolder own("one");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 1000, kAt100);
  write(folder, 1, "a", 1007, kAt300);
  const RunEvents run = read_run(folder);
  EXPECT_EQ(begin_of(run, 1), 200);
  EXPECT_EQ(run.clocks, "All members share one machine's clock.");
}

TEST(RunEvents, a_cut_off_last_line_costs_that_line) {
  const OwnFolder own("cut");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 0, kAt100);
  write(folder, 1, "a", 0, kAt100 + kAt300 + "{\"kind\":\"forward\",\"beg");
  const RunEvents run = read_run(folder);
  EXPECT_EQ(run.ranks[1].events.size(), 2u);
  EXPECT_EQ(run.remarks, std::vector<std::string>{"events-1.jsonl:4: the last line is cut off and left out"});
}

TEST(RunEvents, damaged_lines_are_left_out_and_counted_once_a_file) {
  const OwnFolder own("damaged");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 0, "garbage\n" + kAt100 + "\x01\x02\n" + kAt300);
  write(folder, 1, "a", 0, kAt100);
  const RunEvents run = read_run(folder);
  EXPECT_EQ(run.ranks[0].events.size(), 2u);
  EXPECT_EQ(run.remarks, std::vector<std::string>{"events-0.jsonl:2: is not an event; lines like it that are left out: 2"});
}

TEST(RunEvents, a_file_without_header_is_left_out) {
  const OwnFolder own("headless");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 0, kAt100);
  std::ofstream(folder.events_of(1)) << kAt100;
  EXPECT_EQ(read_run(folder).remarks,
            (std::vector<std::string>{"events-1.jsonl:1: is not the header of an event file; the file is left out",
                                      "rank 1 left no events in this folder"}));
}

TEST(RunEvents, two_files_of_one_rank_are_not_mixed) {
  const OwnFolder own("twice");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 0, kAt100);
  std::filesystem::copy_file(folder.events_of(0), folder.events_of(1));
  EXPECT_EQ(read_run(folder).remarks,
            (std::vector<std::string>{"events-1.jsonl:1: is of a rank that another file has; the file is left out",
                                      "rank 1 left no events in this folder"}));
}

TEST(RunEvents, a_folder_without_events_is_a_mistake) {
  const OwnFolder own("empty");
  const RunFolder folder = RunFolder::open(own.path());
  const auto refusal = [&]() -> std::string {
    try {
      read_run(folder);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(refusal(), own.path().string() + ": has no event files (is this the folder of a run of Shoal?)");
  std::ofstream(folder.events_of(0)) << "nothing";
  EXPECT_EQ(refusal(), own.path().string() +
                           ": events-0.jsonl:1: is not the header of an event file; the file is left "
                           "out (is this the folder of a run of Shoal?)");
  std::filesystem::remove(folder.events_of(0));
  std::filesystem::create_directory(folder.events_of(0));
  EXPECT_EQ(refusal(), own.path().string() +
                           ": events-0.jsonl: is no plain file and is left out (is this the folder of a run of Shoal?)");
}

TEST(RunEvents, merged_is_the_same_run_and_in_order) {
  const OwnFolder own("merged");
  const RunFolder folder = RunFolder::open(own.path());
  write(folder, 0, "a", 1000, kAt300 + kAt100 + "{\"kind\":\"note\",\"begin\":120,\"name\":\"hello\"}\n");
  const RunEvents run = read_run(folder);
  write_merged(folder, run);
  EXPECT_TRUE(folder.event_files().empty());
  const RunEvents again = read_run(folder);
  EXPECT_EQ(again.unix_begin_ns, run.unix_begin_ns);
  EXPECT_EQ(again.remarks, run.remarks);
  EXPECT_EQ(again.size, 2);
  ASSERT_EQ(again.ranks.size(), 1u);
  ASSERT_EQ(again.ranks[0].events.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.ranks[0].events[i].begin, run.ranks[0].events[i].begin);
    EXPECT_EQ(again.name_of(again.ranks[0].events[i]), run.name_of(run.ranks[0].events[i]));
  }
  std::ifstream file(own.path() / "events.jsonl");
  std::string line;
  std::vector<std::string> begins;
  while (std::getline(file, line)) begins.push_back(line.substr(0, line.find(",\"end\"")));
  ASSERT_EQ(begins.size(), 4u);
  EXPECT_EQ(begins[1], "{\"rank\":0,\"kind\":\"forward\",\"begin\":0");
  EXPECT_EQ(begins[3], "{\"rank\":0,\"kind\":\"forward\",\"begin\":200");
}

}  // namespace
}  // namespace shoal::observe
