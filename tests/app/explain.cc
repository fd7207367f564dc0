// `shoal explain`: which run it takes, and what it says of one whose cause is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "shoal/table/telemetry.h"
#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// One member, three steps: 10 ms forward, 10 ms backward, then `idle_ms` until the next.
void make_run(const Folder& folder, const std::string& name, int idle_ms) {
  fs::create_directories(folder.path() / "runs" / name);
  std::ofstream out(folder.path() / "runs" / name / "events.jsonl");
  out << R"({"shoal_events":1,"unix_begin_ns":1,"ranks":[{"rank":0,"size":1,"host":"fox","boot":"b","pid":1,"unix_minus_steady_ns":0}]})"
      << "\n";
  long long at = 0;
  for (int step = 0; step < 3; ++step) {
    for (const char* kind : {"forward", "backward"}) {
      out << R"({"rank":0,"kind":")" << kind << R"(","begin":)" << at << R"(,"end":)" << at + 10'000'000 << R"(,"step":)" << step << "}\n";
      at += 10'000'000;
    }
    at += idle_ms * 1'000'000LL;
  }
}

TEST(explain, takes_the_newest_run_that_recorded_something) {
  const Folder folder;
  make_run(folder, "20260101T000000Z-old", 1);
  make_run(folder, "20260102T000000Z-new", 30);
  fs::create_directories(folder.path() / "runs/20260103T000000Z-doctor/logs");
  const auto outcome = shoal(folder, {"explain"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "runs/20260102T000000Z-new: 1 member, 3 steps in 120 ms\n\n"
            "  1.  50.0 %  data loading\n"
            "              20 ms of each step lie between optimizer.step() and the next forward pass\n"
            "              remedy: DataLoader(num_workers=2, persistent_workers=True) loads while the step runs: 40 ms -> 20 ms a step at best\n"
            "      50.0 %  computing: forward and backward\n");
}

TEST(explain, takes_a_name_in_runs_and_a_folder) {
  const Folder folder;
  make_run(folder, "20260101T000000Z-old", 1);
  make_run(folder, "20260102T000000Z-new", 30);
  EXPECT_THAT(shoal(folder, {"explain", "20260101T000000Z-old", "--json"}).out, HasSubstr(R"("cause":"loading","seconds":0.002)"));
  EXPECT_THAT(shoal(folder, {"explain", "runs/20260101T000000Z-old"}).out, HasSubstr("  3.2 %  data loading"));
}

// What a member met at its tables is a note of the run: in what time it waited, by cause, and what it said and heard.
TEST(explain, tells_what_tables_met) {
  const Folder folder;
  make_run(folder, "20260101T000000Z-run", 1);
  table::Telemetry met;
  for (int i = 0; i < 8; ++i) met.read(3, 5, std::chrono::microseconds(100));
  met.read(4, 5, std::chrono::microseconds(700));
  met.wait(table::Cause::gate, std::chrono::milliseconds(30));
  met.wait(table::Cause::fetch, std::chrono::milliseconds(20));
  met.wait(table::Cause::back_pressure, std::chrono::milliseconds(10));
  met.bytes = {.added = 2'000'000, .asked = 500'000, .other = 0, .rows = 3'000'000, .told = 0, .given = 1'000'000, .taken = 0, .saved = 4'000'000};
  std::ofstream(folder.path() / "runs/20260101T000000Z-run/events.jsonl", std::ios::app)
      << R"({"rank":0,"kind":"note","begin":1000000,"end":1000000,"name":")" << met.line("counts (ssp:3)") << "\"}\n";
  const auto outcome = shoal(folder, {"explain"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("table counts (ssp:3): 9 rows read, 1.88 clocks behind in the mean, 2 at most: \u00b7\u2581\u2588; half were vouched for less than 128 us before"));
  EXPECT_THAT(outcome.out, HasSubstr("\u2588\u00b7\u00b7\u2581 from 128 us by twos"));
  EXPECT_THAT(outcome.out, HasSubstr("; waited 30 ms for the slowest; waited 20 ms for rows; waited 10 ms for servers to catch up; said 2.5 MB (2.0 MB of it "
                                     "increments), heard 3.0 MB; wrote 4.0 MB to snapshots; handed 1.0 MB of rows to other members, and took over 0.0 MB"));
}

// What trains without PyTorch is recorded as well: learners and topics.
TEST(explain, finds_runs_of_topics) {
  const Folder folder;
  std::string text;
  for (int line = 0; line < 60; ++line) text += line % 2 == 0 ? "tea pot cup milk tea\n" : "sail boat wind deck sail\n";
  folder.write("t.txt", text);
  const auto trained = shoal(folder, {"run", "-n", "2", "--", SHOAL_PROGRAM, "topics", "train", "t.txt", "-k", "3", "--sweeps", "5", "--output", "m"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto outcome = shoal(folder, {"explain"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("table topic-totals"));
}

TEST(explain, a_run_that_is_not_there_is_one_line) {
  const Folder folder;
  const auto none = shoal(folder, {"explain"});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.err, "runs: holds no run with events (give the folder of a run: shoal explain RUN)\n");
  const auto wrong = shoal(folder, {"explain", "nothing"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err, "nothing: there is no such run (give its folder, or its name in runs/)\n");
  fs::create_directories(folder.path() / "runs/empty");
  EXPECT_THAT(shoal(folder, {"explain", "empty"}).err, HasSubstr("runs/empty: has no event files"));
}

}  // namespace
}  // namespace shoal::app::test
