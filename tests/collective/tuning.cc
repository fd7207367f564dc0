#include "shoal/collective/tuning.h"

#include <gtest/gtest.h>

#include "shoal/collective/select.h"
#include "shoal/core/error.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

std::string refusal_of_tuning(const std::string& text) {
  return shoal::refusal([&] { Tuning tuning(text); });
}

// The most wanted one; "" where no rule wants any.
std::string wanted(const Tuning& tuning, Collective collective, std::uint32_t ranks, double bytes) {
  const auto wishes = tuning.wishes(collective, ranks, bytes);
  return wishes.empty() || wishes[0].score == 0 ? "" : wishes[0].program;
}

TEST(Tuning, the_last_rule_that_fits_counts) {
  const Tuning tuning("allreduce:@ring#all_reduce:0-4K:@gather#all-reduce:1M-inf:@trees#allgather:@direct");
  EXPECT_EQ(wanted(tuning, Collective::all_reduce, 4, 4000), "gather");
  EXPECT_EQ(wanted(tuning, Collective::all_reduce, 4, 4001), "ring");
  EXPECT_EQ(wanted(tuning, Collective::all_reduce, 4, 1e6), "trees");
  EXPECT_EQ(wanted(tuning, Collective::all_gather, 4, 1), "direct");
  EXPECT_EQ(wanted(tuning, Collective::broadcast, 4, 1), "");
}

TEST(Tuning, rules_are_for_several_collectives_sizes_and_groups) {
  const Tuning tuning("allgather,reduce_scatter:0-1K,1M-2M:[2-4,8]:@ring");
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    for (const std::uint32_t ranks : {2U, 4U, 8U}) {
      for (const double bytes : {0., 1000., 1e6, 2e6}) EXPECT_EQ(wanted(tuning, collective, ranks, bytes), "ring");
      for (const double bytes : {1001., 2e6 + 1}) EXPECT_EQ(wanted(tuning, collective, ranks, bytes), "");
    }
    for (const std::uint32_t ranks : {1U, 5U, 9U}) EXPECT_EQ(wanted(tuning, collective, ranks, 0), "");
  }
  EXPECT_EQ(wanted(tuning, Collective::all_reduce, 2, 0), "");
  EXPECT_EQ(wanted(Tuning("allreduce:[3-inf]:@swing"), Collective::all_reduce, 4096, 0), "swing");
}

TEST(Tuning, the_highest_score_counts_and_the_last_rule_of_a_program_decides_its_score) {
  EXPECT_EQ(wanted(Tuning("allreduce:@ring:inf#allreduce:@chain:5#allreduce:@swing"), Collective::all_reduce, 4, 1), "ring");
  EXPECT_EQ(wanted(Tuning("allreduce:99:@ring#allreduce:@chain"), Collective::all_reduce, 4, 1), "chain");
  EXPECT_EQ(wanted(Tuning("allreduce:@chain#allreduce:101:@ring#allreduce:@ring:1"), Collective::all_reduce, 4, 1), "chain");
}

TEST(Tuning, wishes_go_before_prices_where_they_can_be_had) {
  LinkModel link;
  const auto tune = [&](const char* rules) { link.tuning = std::make_shared<const Tuning>(rules); };
  tune("allreduce:@chain#allreduce:8M-inf:@trees:inf");
  EXPECT_EQ(choose(Collective::all_reduce, 4, 1e6, link), "chain");
  EXPECT_EQ(choose(Collective::all_reduce, 4, 8e6, link), "chain");  // no network, no trees: the next one
  tune("allreduce:8M-inf:@trees");
  EXPECT_EQ(choose(Collective::all_reduce, 4, 8e6, link), choose(Collective::all_reduce, 4, 8e6, {}));
  tune("allreduce:@ring");
  EXPECT_NE(choose(Collective::all_reduce, 4, 1e6, link, true), "ring");  // rank order was asked for
  tune("allreduce:[5-8]:@ring");
  EXPECT_EQ(choose(Collective::all_reduce, 8, 64, link), "ring");
  EXPECT_NE(choose(Collective::all_reduce, 4, 64, link), "ring");
}

TEST(Tuning, what_has_score_0_is_not_taken) {
  LinkModel link;
  const std::string first = choose(Collective::all_reduce, 4, 64, link);
  link.tuning = std::make_shared<const Tuning>("allreduce:0-1K:@" + first + ":0");
  EXPECT_NE(choose(Collective::all_reduce, 4, 64, link), first);
  link.tuning = std::make_shared<const Tuning>("alltoall:@direct:0");
  EXPECT_EQ(refusal([&] { choose(Collective::all_to_all, 4, 64, link); }, Code::unsupported),
            "SHOAL_TUNE: its rules leave no program for all_to_all of 4 ranks and 64 bytes (give one of them a score above 0)");
}

TEST(Tuning, what_is_wrong_with_a_rule_is_one_line) {
  const auto expect = [](const std::string& rule, const std::string& line) {
    EXPECT_EQ(refusal_of_tuning("allreduce:@ring#" + rule),
              "SHOAL_TUNE: \"" + rule + "\": " + line + " (rules are like allreduce:1M-inf:@trees, separated by #)");
  };
  expect("ring", "not a collective, sizes and @program");
  expect("", "not a collective, sizes and @program");
  expect("allreduce:inf", "not a collective, sizes and @program");
  expect("sum:@ring", "there is no collective sum");
  expect("allreduce,:@ring", "there is no collective ");
  expect("allreduce:9-5:@ring", "its sizes end before they begin");
  expect("allreduce:0-4K,7:@ring", "7 is no range of sizes");
  expect("allreduce:[8-2]:@ring", "its numbers of members end before they begin");
  expect("allreduce:[8-x]:@ring", "x is no whole number");
  expect("allreduce:[]:@ring", " is no whole number");
  expect("allreduce:99999999999:@ring", "99999999999 is no whole number");
  expect("allreduce:cuda:@ring", "cuda is neither sizes, [members], a score nor @program");
  expect("allreduce::@ring", "an empty field is neither sizes, [members], a score nor @program");
  expect("allgather:@chain", "no program chain for all_gather: direct, ring or trees");
  expect("allreduce,allgather:@chain", "no program chain for all_gather: direct, ring or trees");
  EXPECT_NE(refusal_of_tuning("allreduce:x-y:@ring"), "nothing was refused");
}

}  // namespace
}  // namespace shoal::collective
