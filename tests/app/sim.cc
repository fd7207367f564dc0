// `shoal sim` as people call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const char* const kScenario = R"(shoal_sim = 1
name = "four hosts"
[topology]
form = "star"
size = [4]
rate = "1gbit"
[costs]
model = "links_only"
[[run]]
name = "gradients"
program = "ring"
bytes = "100MB"
repeats = 2
[[flow]]
from = "0"
to = "1"
rate = "1kbit"
)";

TEST(Sim, tells_runs_flows_and_the_busiest_links) {
  const Folder folder;
  folder.write("s.toml", kScenario);
  const std::string file = folder.path() / "s.toml";
  const auto text = shoal(folder, {"sim", file});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("four hosts: 2.4 s on 4 hosts and 8 links, "));
  EXPECT_THAT(text.out, HasSubstr("\n  gradients: 0 s .. 2.4 s, 1.2 s each of 2, 100 MB at 667 Mbit/s\n  flow 0: under way at the end\n"));
  const auto json = nlohmann::json::parse(shoal(folder, {"sim", file, "--json"}).out);
  EXPECT_NEAR(json.at("seconds").get<double>(), 2.4, 0.01);
  EXPECT_EQ(json.at("runs")[0].at("jobs").size(), 2u);
  EXPECT_EQ(json.at("links").size(), 8u);
  EXPECT_TRUE(json.at("flows")[0].at("arrived").is_null());
}

TEST(Sim, writes_every_transfer_as_a_trace) {
  const Folder folder;
  folder.write("s.toml", kScenario);
  ASSERT_EQ(shoal(folder, {"sim", folder.path() / "s.toml", "--trace", folder.path() / "trace.json"}).status, 0);
  std::ifstream in(folder.path() / "trace.json");
  const auto trace = nlohmann::json::parse(in);
  double bytes = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") bytes += event.at("args").at("bytes").get<double>();
  }
  EXPECT_NEAR(bytes, 2 * 6 * 100e6, 1);
}

TEST(Sim, a_mistake_is_one_line) {
  const Folder folder;
  folder.write("s.toml", "shoal_sim = 1\n[topology]\nform = \"star\"\nsize = [4]\nrate = \"quick\"\n");
  const auto outcome = shoal(folder, {"sim", folder.path() / "s.toml"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("s.toml: topology.rate: "));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

}  // namespace
}  // namespace shoal::app::test
