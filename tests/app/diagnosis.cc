// What measured figures mean. The yardstick is fcnet: 7,444,202 parameters, 17,787,392 operations an image
// forward.
#include "app/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal::app {
namespace {

using testing::HasSubstr;
using testing::Not;

Figures four_hosts(double flops, double rate) {
  Figures figures;
  for (int i = 0; i < 4; ++i)
    figures.members.push_back({"host" + std::to_string(i), "10.77.0.1:1", 2, flops, "no torch"});
  figures.pairs.size = 4;
  figures.pairs.figures.resize(16, {50e-6, rate, rate / 2});
  figures.link = {0, rate, 1e12};
  return figures;
}

// Backward is twice forward: a step of 128 images is 3 x 17,787,392 x 128 operations.
TEST(diagnosis, compute_is_the_slowest_members) {
  Figures figures = four_hosts(20e9, 25e6);
  figures.members[2].flops = 10e9;
  EXPECT_DOUBLE_EQ(forecast_fcnet(figures).compute, 3 * 17'787'392.0 * 128 / 10e9);
}

// 2 x 3/4 of 29.8 MB through 25 MB/s; the price may add what it takes to reduce.
TEST(diagnosis, the_exchange_is_what_the_links_take) {
  const StepForecast step = forecast_fcnet(four_hosts(20e9, 25e6));
  EXPECT_NEAR(step.communication, 1.5 * 4 * 7'444'202 / 25e6, 0.01);
  EXPECT_NEAR(step.balanced_rate * step.compute, 1.5 * 4 * 7'444'202, 1);
}

TEST(diagnosis, each_regime_has_its_words) {
  EXPECT_THAT(to_text(four_hosts(20e9, 25e6)), HasSubstr("network-bound"));
  EXPECT_THAT(to_text(four_hosts(20e9, 1.5 * 4 * 7'444'202 / 0.3415)), HasSubstr("balanced"));
  EXPECT_THAT(to_text(four_hosts(20e9, 1250e6)), HasSubstr("compute-bound"));
}

TEST(diagnosis, what_was_not_measured_is_said_and_not_guessed) {
  const std::string text = to_text(four_hosts(0, 25e6));
  EXPECT_THAT(text, HasSubstr("skipped: no torch"));
  EXPECT_THAT(text, HasSubstr("compute was not measured"));
  EXPECT_THAT(text, Not(HasSubstr("-bound")));
}

TEST(diagnosis, one_member_has_no_links) {
  Figures figures;
  figures.members.push_back({"me", "-", 2, 20e9, ""});
  const std::string text = to_text(figures);
  EXPECT_THAT(text, HasSubstr("20.0 GFLOP/s"));
  EXPECT_THAT(text, Not(HasSubstr("exchange a step")));
}

TEST(diagnosis, machines_read_the_same_figures) {
  const auto json = nlohmann::json::parse(to_json(four_hosts(0, 25e6)));
  EXPECT_EQ(json.at("members").size(), 4u);
  EXPECT_EQ(json.at("pairs").size(), 12u);
  EXPECT_EQ(json.at("pairs")[0].at("rate_together"), 12.5e6);
  EXPECT_TRUE(json.at("fcnet").at("compute_s").is_null());
}

}  // namespace
}  // namespace shoal::app
