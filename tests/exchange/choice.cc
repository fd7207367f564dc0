// Goal: the grammar of --plan. What is written is what is chosen, it survives being written again, and a mistake is one line that names it.
#include "shoal/exchange/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

using Policy = Choice::Policy;

Choice choice(const std::string& text) { return parse_choice(text, "--plan"); }

std::string refusal(const std::string& text) {
  try {
    choice(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Choice, each_policy_is_a_word_and_some_take_an_argument) {
  EXPECT_EQ(choice("").policy, Policy::automatic);
  EXPECT_EQ(choice("auto").policy, Policy::automatic);
  EXPECT_EQ(choice("poseidon").policy, Policy::poseidon);
  EXPECT_EQ(choice("wfbp").policy, Policy::wfbp);
  EXPECT_EQ(choice("p3").bytes, 0u);
  EXPECT_EQ(choice("p3:64KB").bytes, 64'000u);
  EXPECT_EQ(choice("ddp").bytes, 25'000'000u);
  EXPECT_EQ(choice("ddp:1MiB").bytes, 1u << 20);
  EXPECT_EQ(choice("local:8").local_steps, 8u);
  EXPECT_EQ(choice("ring").policy, Policy::way);
  EXPECT_EQ(choice("ring").way, "ring");
  EXPECT_EQ(choice("factors").way, kByFactors);
}

TEST(Choice, what_looks_like_a_path_is_a_saved_plan) {
  EXPECT_EQ(choice("plan.json").file, "plan.json");
  EXPECT_EQ(choice("runs/last").file, "runs/last");
  EXPECT_EQ(choice("./auto").file, "./auto");
  EXPECT_EQ(choice("auto").file, "");
}

TEST(Choice, the_last_glob_that_matches_decides) {
  const auto c = choice("wfbp,embed*=ring,*.weight=direct,embed?.weight=chain");
  EXPECT_EQ(c.policy, Policy::wfbp);
  EXPECT_EQ(*c.override_of("embed.bias"), "ring");
  EXPECT_EQ(*c.override_of("embed.weight"), "direct");
  EXPECT_EQ(*c.override_of("embed1.weight"), "chain");
  EXPECT_EQ(c.override_of("fc.bias"), nullptr);
  EXPECT_EQ(choice("fc*=factors").policy, Policy::automatic);
}

TEST(Choice, survives_being_written) {
  for (const std::string text : {"auto", "poseidon", "wfbp", "p3", "p3:200KB", "ddp:25MB", "ddp:1048576", "local:8", "ring", "auto,a*=ring,b=factors",
                                 "runs/x/plan.json"}) {
    EXPECT_EQ(to_text(choice(text)), text);
  }
  EXPECT_EQ(to_text(choice("p3:64000")), "p3:64KB");
  EXPECT_EQ(to_text(choice("")), "auto");
}

TEST(Choice, a_mistake_is_one_line_that_names_it) {
  EXPECT_THAT(refusal("rnig"), testing::StartsWith("--plan: \"rnig\" is no plan (auto, poseidon, wfbp, p3, ddp:25MB, a way (direct, "));
  EXPECT_THAT(refusal("auto,ring"), testing::StartsWith("--plan: \"ring\" is no GLOB=WAY ("));
  EXPECT_THAT(refusal("fc*=rnig"), testing::StartsWith("--plan: there is no way \"rnig\" (one of direct, "));
  EXPECT_THAT(refusal("=ring"), testing::StartsWith("--plan: \"=ring\" names no tensor"));
  EXPECT_THAT(refusal("auto:3"), testing::StartsWith("--plan: auto takes no \":3\""));
  EXPECT_THAT(refusal("ddp:"), testing::StartsWith("--plan: '' is not a size"));
  EXPECT_THAT(refusal("ddp:0"), testing::StartsWith("--plan: ddp:0 is not between"));
  EXPECT_THAT(refusal("ddp:2GB"), testing::StartsWith("--plan: ddp:2GB is not between"));
  for (const char* steps : {"local", "local:", "local:0", "local:-1", "local:8x", "local:99999999999"}) {
    EXPECT_THAT(refusal(steps), testing::HasSubstr("does not say how many steps")) << steps;
  }
}

}  // namespace
}  // namespace shoal::exchange
