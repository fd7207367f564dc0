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

TEST(Tuning, the_last_rule_that_fits_counts) {
  const Tuning tuning("allreduce:@ring#all_reduce:0-4K:@gather#all-reduce:1M-inf:@trees#allgather:@direct");
  EXPECT_EQ(tuning.wish(Collective::all_reduce, 4000), "gather");
  EXPECT_EQ(tuning.wish(Collective::all_reduce, 4001), "ring");
  EXPECT_EQ(tuning.wish(Collective::all_reduce, 1e6), "trees");
  EXPECT_EQ(tuning.wish(Collective::all_gather, 1), "direct");
  EXPECT_EQ(tuning.wish(Collective::broadcast, 1), std::nullopt);
}

TEST(Tuning, wishes_go_before_prices_where_they_can_be_had) {
  LinkModel link;
  link.tuning = std::make_shared<const Tuning>("allreduce:@chain#allreduce:8M-inf:@trees");
  EXPECT_EQ(choose(Collective::all_reduce, 4, 1e6, link), "chain");
  EXPECT_EQ(choose(Collective::all_reduce, 4, 8e6, link), choose(Collective::all_reduce, 4, 8e6, {}));  // no network, no trees
  link.tuning = std::make_shared<const Tuning>("allreduce:@ring");
  EXPECT_NE(choose(Collective::all_reduce, 4, 1e6, link, true), "ring");                                 // rank order was asked for
}

TEST(Tuning, what_is_wrong_with_a_rule_is_one_line) {
  const std::string hint = " (rules are like allreduce:1M-inf:@trees, separated by #)";
  EXPECT_EQ(refusal_of_tuning("ring"), "SHOAL_TUNE: \"ring\": not a collective, sizes and @program" + hint);
  EXPECT_EQ(refusal_of_tuning("sum:@ring"), "SHOAL_TUNE: \"sum:@ring\": there is no collective sum" + hint);
  EXPECT_EQ(refusal_of_tuning("allreduce:5:@ring"), "SHOAL_TUNE: \"allreduce:5:@ring\": 5 is no range of sizes" + hint);
  EXPECT_EQ(refusal_of_tuning("allreduce:9-5:@ring"), "SHOAL_TUNE: \"allreduce:9-5:@ring\": its sizes end before they begin" + hint);
  EXPECT_EQ(refusal_of_tuning("allgather:@chain"),
            "SHOAL_TUNE: \"allgather:@chain\": no program chain for all_gather: direct, ring or trees" + hint);
  EXPECT_NE(refusal_of_tuning("allreduce:x-y:@ring"), "nothing was refused");
}

}  // namespace
}  // namespace shoal::collective
