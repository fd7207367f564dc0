// `shoal bench exchange` as people call it: what it counts, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;

TEST(bench, counts_what_members_send_and_what_is_read_in_place) {
  const Folder folder;
  const auto outcome = shoal(folder, {"bench", "exchange", "-n", "2", "--sizes", "4MB", "--repeats", "3", "--zero-copy", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto all = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(all.size(), 1u);
  const auto& memories = all[0].at("memories");
  ASSERT_EQ(memories.size(), 2u);
  EXPECT_EQ(memories[0].at("not_copied"), 0.0);
  EXPECT_GT(memories[1].at("not_copied"), 0.0);
  EXPECT_EQ(memories[0].at("sent"), memories[1].at("sent"));
  EXPECT_GE(memories[0].at("sent"), 4e6);  // of two members together: each lacks at least half of the sum
  for (const auto& of : memories) EXPECT_GT(of.at("median_s"), 0.0);
}

TEST(bench, takes_the_program_that_is_wished) {
  const Folder folder;
  const std::vector<std::string> words{"bench", "exchange", "-n", "2", "--sizes", "64KB", "--repeats", "1", "--json"};
  const auto outcome = shoal(folder, words, {{"SHOAL_TUNE", "allreduce:0-1M:@chain"}});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)[0].at("program"), "chain");
  const auto refused = shoal(folder, words, {{"SHOAL_TUNE", "allreduce:@none"}});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, testing::StartsWith("SHOAL_TUNE: \"allreduce:@none\": no program none for all_reduce: "));
}

TEST(bench, under_run_it_is_a_member_like_any_other) {
  const Folder folder;
  const auto outcome = shoal(folder, {"run", "-n", "3", "--", SHOAL_PROGRAM, "bench", "exchange", "--sizes", "64KB", "--repeats", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[0] sums of float32 of 3 members, 2 of each size"));
  EXPECT_THAT(outcome.out, HasSubstr("[0]     64 KB"));
}

TEST(bench, refuses_in_a_line_before_anything_starts) {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& line) {
    const auto outcome = shoal(folder, words);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(line));
  };
  refused({"bench", "exchange"}, "needs members");
  refused({"bench", "exchange", "-n", "2", "--sizes", "6"}, "is no size of float32 gradients: 6");
  refused({"bench", "exchange", "-n", "2", "--sizes", "much"}, "much");
  refused({"bench", "exchange", "-n", "2", "--repeats", "0"}, "--repeats");
  refused({"bench"}, "subcommand");
}

}  // namespace
}  // namespace shoal::app::test
