// The page holds the run's figures, stands alone, and stays small for long runs.
#include "shoal/observe/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

using Json = nlohmann::json;

Json data_of(const RunEvents& run, std::size_t most_spans = kMostSpans) {
  return Json::parse(report_data("fashion", run, account_of(run, nullptr), Explanation{}, most_spans));
}

TEST(Report, holds_the_figures_of_the_account) {
  const Json data = data_of(two_members());
  EXPECT_EQ(data["steps"], 2);
  EXPECT_NEAR(data["seconds_a_step"], 0.130, 1e-12);
  EXPECT_NEAR(data["hidden"], 80.0 / 140, 1e-12);
  EXPECT_EQ(data["ranks"][0]["host"], "fox");
  EXPECT_NEAR(data["ranks"][0]["spent"][4], 0.040, 1e-12);
  EXPECT_EQ(data["ranks"][0]["waited_for"][0][0], 1);
  EXPECT_EQ(data["links"].size(), 2u);
}

TEST(Report, says_first_what_the_time_was_lost_to) {
  const RunEvents run = two_members();
  const Account account = account_of(run, nullptr);
  const Explanation why = explain(account, nullptr);
  EXPECT_EQ(Json::parse(report_data("fashion", run, account, why))["why"], headline(why));
  EXPECT_NE(report_of("fashion", run, account, why).find("<p id=\"why\"></p>"), std::string::npos);
}

TEST(Report, draws_every_step_as_a_mean_over_members) {
  const Json bins = data_of(two_members())["per_step"];
  ASSERT_EQ(bins.size(), 2u);
  const std::vector<double> expected = {0, 0.020, 0.050, 0.010, 0.020, 0.010};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(bins[0][i].get<double>(), expected[i], 1e-12) << i;
}

TEST(Report, draws_the_loss_from_the_first_member_that_has_it) {
  const Json metrics = data_of(two_members())["metrics"];
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0]["name"], "loss");
  EXPECT_EQ(metrics[0]["points"], Json::parse("[[0.0,2.5],[1.0,1.5]]"));
}

TEST(Report, a_loss_that_is_no_number_is_a_gap) {
  RunEvents run = two_members();
  for (Event& event : run.ranks[0].events) {
    if (event.kind == EventKind::metric && event.step == 1) event.value = std::nan("");
  }
  EXPECT_EQ(data_of(run)["metrics"][0]["points"], Json::parse("[[0.0,2.5],[1.0,null]]"));
}

TEST(Report, shows_the_whole_of_a_short_run) {
  const Json timeline = data_of(two_members())["timeline"];
  EXPECT_EQ(timeline["left_out"], "");
  EXPECT_NEAR(timeline["seconds"], 0.260, 1e-8);
  EXPECT_EQ(timeline["members"][0]["compute"].size(), 6u);
  EXPECT_EQ(timeline["members"][0]["lanes"], 2);
  EXPECT_EQ(timeline["members"][0]["exchanges"][1], Json::parse("[0.05,0.01,2,0,100.0,1]"));
}

// Of 300 steps with 14 spans each, 100 spans have room for the seven around the middle.
TEST(Report, shows_whole_steps_of_a_long_run_and_says_which) {
  const RunEvents one = two_members();
  RunEvents run = one;
  for (RankEvents& rank : run.ranks) rank.events.clear();
  for (int pair = 0; pair < 150; ++pair) {
    for (std::size_t r = 0; r < 2; ++r) {
      for (Event event : one.ranks[r].events) {
        event.begin += Nanoseconds(300'000'000LL * pair);
        event.end += Nanoseconds(300'000'000LL * pair);
        if (event.step >= 0) event.step += 2 * pair;
        run.ranks[r].events.push_back(event);
      }
    }
  }
  const Json timeline = data_of(run, 100)["timeline"];
  std::size_t spans = 0;
  for (const Json& member : timeline["members"]) {
    for (const char* track : {"compute", "waits", "produced", "exchanges", "sent", "received"}) spans += member[track].size();
  }
  EXPECT_EQ(spans, 98u);
  EXPECT_EQ(timeline["left_out"], "steps 147 to 153");
  EXPECT_LE(data_of(run)["per_step"].size(), kMostBins);
}

TEST(Report, is_one_page_without_any_address) {
  RunEvents run = two_members();
  run.names[kFc] = "</script><b>fc";
  const std::string page = report_of("fashion", run, account_of(run, nullptr), Explanation{});
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("<\\/script><b>fc"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find('@' + std::string("DATA@")), std::string::npos);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

}  // namespace
}  // namespace shoal::observe
