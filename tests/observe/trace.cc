// The trace is valid JSON under gzip, and what shares a track never overlaps.
#include "shoal/observe/trace.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

nlohmann::json trace_of(const RunFolder& folder) {
  gzFile file = ::gzopen((folder.path() / "trace.json.gz").c_str(), "rb");
  std::string text, chunk(1 << 16, '\0');
  for (int got; (got = ::gzread(file, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;) {
    text.append(chunk, 0, static_cast<std::size_t>(got));
  }
  ::gzclose(file);
  return nlohmann::json::parse(text);
}

TEST(Trace, has_a_process_a_member_and_a_track_a_kind) {
  const OwnFolder own("trace");
  const RunFolder folder = RunFolder::open(own.path());
  write_trace(folder, two_members());
  const auto trace = trace_of(folder);
  std::map<std::pair<int, int>, std::string> tracks;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  std::map<std::string, int> spans;  // of rank 0, by track
  double first_wait = -1, loss = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event.value("pid", -1) != 0) continue;
    if (event["ph"] == "X") {
      const std::string track = tracks[{0, event["tid"]}];
      ++spans[track];
      if (track == "waiting" && first_wait < 0) {
        first_wait = event["ts"];
        EXPECT_EQ(event["dur"], 20000.0);
        EXPECT_EQ(event["name"], "rank 1");
      }
    }
    if (event["ph"] == "C") loss = event["args"]["value"];
  }
  EXPECT_EQ(spans, (std::map<std::string, int>{
                       {"compute", 6}, {"waiting", 4}, {"exchange 1", 2}, {"exchange 2", 2}, {"from rank 1", 2}}));
  EXPECT_EQ(first_wait, 60000.0);
  EXPECT_EQ(loss, 1.5);
}

TEST(Trace, spans_of_one_track_do_not_overlap) {
  std::vector<Instant> lanes;
  const auto lane = [&](double begin, double end) { return free_lane(lanes, {EventKind::exchange, ms(begin), ms(end)}, 2); };
  EXPECT_EQ(lane(0, 10), 0);
  EXPECT_EQ(lane(5, 20), 1);
  EXPECT_EQ(lane(6, 7), -1);  // no third
  EXPECT_EQ(lane(10, 12), 0);
  EXPECT_EQ(lane(19, 30), 0);
  EXPECT_EQ(lane(20, 21), 1);
}

}  // namespace
}  // namespace shoal::observe
