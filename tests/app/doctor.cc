// `shoal doctor` and `shoal program` as people call them. A script stands in for Python's matrix product.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

Program::Variables python_that_multiplies(const Folder& folder, const std::string& gemm) {
  folder.write("python", "#!/bin/sh\nif [ \"$1\" = -c ]; then echo; else " + gemm + "; fi\n");
  fs::permissions(folder.path() / "python", fs::perms::owner_all);
  return {{"SHOAL_PYTHON", folder.path() / "python"}};
}

TEST(doctor, three_members_measure_every_pair_and_rank_0_reports) {
  const Folder folder;
  const auto outcome = shoal(folder, {"doctor", "-n", "3", "--json"}, python_that_multiplies(folder, "echo '{\"flops\": 2e10}'"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("members").size(), 3u);
  EXPECT_EQ(json.at("members")[2].at("flops"), 2e10);
  ASSERT_EQ(json.at("pairs").size(), 6u);
  for (const auto& pair : json.at("pairs")) {
    EXPECT_GT(pair.at("latency_s"), 0.0);
    EXPECT_GT(pair.at("rate_alone"), 0.0);
  }
  EXPECT_GT(json.at("fcnet").at("communication_s"), 0.0);
}

TEST(doctor, under_run_it_is_a_member_like_any_other) {
  const Folder folder;
  const auto outcome = shoal(folder, {"run", "-n", "2", "--", SHOAL_PROGRAM, "doctor"}, python_that_multiplies(folder, "echo no >&2; exit 1"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[0] rank  host"));
  EXPECT_THAT(outcome.out, HasSubstr("skipped: no"));
  EXPECT_THAT(outcome.out, HasSubstr("compute was not measured"));
}

TEST(doctor, alone_it_looks_at_this_machine) {
  const Folder folder;
  const auto outcome = shoal(folder, {"doctor"}, python_that_multiplies(folder, "echo '{\"flops\": 2e10}'"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("20.0 GFLOP/s"));
}

TEST(program, a_schedule_is_shown_proved_and_priced) {
  const Folder folder;
  EXPECT_THAT(shoal(folder, {"program", "show", "ring", "-n", "4"}).out, StartsWith("ring: all_reduce of 4 ranks"));
  EXPECT_EQ(nlohmann::json::parse(shoal(folder, {"program", "show", "ring", "-n", "4", "--json"}).out).at("ranks"), 4);
  EXPECT_EQ(shoal(folder, {"program", "verify", "binomial", "--collective", "broadcast", "-n", "5", "--root", "2"}).status, 0);
  const std::string prices = shoal(folder, {"program", "price", "-n", "4", "--size", "64MB"}).out;
  EXPECT_THAT(prices, StartsWith("all_reduce of 64 MB on 4 members, 1 Gbit/s a member, 100 us a step\n"));
  for (const char* builder : {"\ndirect ", "\nring ", "\nchain "}) EXPECT_THAT(prices, HasSubstr(builder));
  EXPECT_EQ(prices.find("cheapest"), prices.rfind("cheapest"));
  EXPECT_THAT(prices, HasSubstr("cheapest"));
}

TEST(program, mistakes_are_refused_in_one_line) {
  const Folder folder;
  ASSERT_EQ(shoal(folder, {"topo", "generate", "star", "4", "--rate", "1gbit", "-o", "s.json"}).status, 0);
  ASSERT_EQ(shoal(folder, {"program", "build", "s.json", "--mode", "ring", "-o", "p.json"}).status, 0);
  ASSERT_TRUE(std::filesystem::create_directory(folder.path() / "ring"));  // a folder is no program
  EXPECT_THAT(shoal(folder, {"program", "price", "ring", "--topology", "s.json"}).out, StartsWith("ring of 64 MB on star_4: "));
  const struct {
    std::vector<std::string> words;
    std::string line;
  } mistakes[] = {
      {{"show", "ring", "-n", "0"}, "-n: a program has 1 to 4096 members, not 0\n"},
      {{"verify", "ring"}, "-n: ring is no file, and a program by name needs its members (-n 4)\n"},
      {{"price", "-n", "4", "--collective", "sum"},
       "--collective: there is no collective sum (one of all_reduce, reduce_scatter, all_gather, broadcast, "
       "reduce, gather, "
       "scatter, all_to_all)\n"},
      {{"verify", "zigzag", "-n", "4"},
       "no program \"zigzag\" for all_reduce (one of direct, gather, chain, ring, recursive_doubling, "
       "halving_doubling, swing, grid, double_binary_tree)\n"},
      {{"price", "-n", "4", "--json"}, "--json: is of use with --topology\n"},
      {{"price", "-n", "4", "--root", "1"}, "--root: says nothing without --topology: a price is the same for every root\n"},
      {{"price", "--topology", "s.json"}, "--topology: which program? (a file of `program build`, or a builder: ring)\n"},
      {{"price", "ring", "--topology", "s.json", "--rate", "1gbit"}, "--rate: the rates are those of s.json\n"},
      {{"price", "ring", "--topology", "s.json", "--alpha", "1us"}, "--alpha: the latencies are those of s.json\n"},
      {{"price", "ring", "-n", "3", "--topology", "s.json"}, "topology star_4: has 4 hosts, the program 3 ranks\n"},
      {{"verify", "p.json", "-n", "3"}, "-n: p.json is a program of 4 members, not of 3\n"},
      {{"verify", "p.json", "--collective", "broadcast"}, "--collective: p.json is a program of all_reduce\n"},
      {{"show", "p.json", "--svg", "p.svg", "--json"}, "--json: has no use beside --svg\n"},
      {{"verify", "ring", "-n", "4", "--root", "0"}, "--root: all_reduce has none (broadcast, reduce, gather and scatter do)\n"},
  };
  for (const auto& mistake : mistakes) {
    auto words = mistake.words;
    words.insert(words.begin(), "program");
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.err, mistake.line);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace shoal::app::test
