// Goal: the grammar of --plan. What is written is what is chosen, it survives being written again, and a mistake is one line that names it.
#include "shoal/exchange/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

using Policy = Choice::Policy;

Choice choice(const std::string& text) { return parse_choice(text, "--plan"); }

std::string refusal_of_choice(const std::string& text) {
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
  EXPECT_EQ(choice("local:8").rounds->steps, 8u);
  EXPECT_EQ(choice("ring").policy, Policy::way);
  EXPECT_EQ(choice("ring").way, "ring");
  EXPECT_EQ(choice("factors").way, kByFactors);
}

TEST(Choice, diloco_has_the_papers_outer_optimizer_unless_told_otherwise) {
  const auto usual = *choice("diloco:16").rounds, told = *choice("diloco:16:4:0.5:0.8").rounds,
             local = *choice("local:16").rounds;
  EXPECT_EQ(std::tie(usual.steps, usual.fragments, usual.rate, usual.momentum), std::make_tuple(16u, 1u, 0.7, 0.9));
  EXPECT_EQ(std::tie(told.steps, told.fragments, told.rate, told.momentum), std::make_tuple(16u, 4u, 0.5, 0.8));
  EXPECT_EQ(std::tie(local.fragments, local.rate, local.momentum), std::make_tuple(1u, 1.0, 0.0));
}

TEST(Choice, turns_divide_a_round_evenly_and_each_comes_once_in_it) {
  for (const Rounds rounds :
       {Rounds{.steps = 1}, Rounds{.steps = 8}, Rounds{.steps = 8, .fragments = 8}, Rounds{.steps = 7, .fragments = 3}}) {
    std::uint64_t last = 0, due = 0;
    for (std::uint64_t step = 1; step <= 5 * rounds.steps; ++step) {
      if (!rounds.is_due(step)) continue;
      EXPECT_EQ(step, (++due * rounds.steps + rounds.fragments - 1) / rounds.fragments);
      EXPECT_LE(step - last, (rounds.steps + rounds.fragments - 1) / rounds.fragments);
      last = step;
    }
    EXPECT_EQ(due, 5 * rounds.fragments);
  }
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
  for (const std::string text : {"auto", "poseidon", "wfbp", "p3", "p3:200KB", "ddp:25MB", "ddp:1048576", "local:8",
                                 "local:8,a*=int8", "diloco:16", "diloco:16:4", "diloco:16:1:0.5", "diloco:16:4:0.7:0.8",
                                 "diloco:16:1:1:0", "ps:bsp", "ps:essp:2+int8", "ring", "auto,a*=ring,b=factors", "runs/x/plan.json"}) {
    EXPECT_EQ(to_text(choice(text)), text);
  }
  EXPECT_EQ(to_text(choice("p3:64000")), "p3:64KB");
  EXPECT_EQ(to_text(choice("")), "auto");
}

TEST(Choice, a_mistake_is_one_line_that_names_it) {
  EXPECT_THAT(refusal_of_choice("rnig"),
              testing::StartsWith(
                  "--plan: \"rnig\" is no plan (auto, poseidon, wfbp, p3, ddp:25MB, local:8, diloco:16, ps:ssp:3, a way (direct, "));
  EXPECT_THAT(refusal_of_choice(","), testing::StartsWith("--plan: \",\" begins with no policy ("));
  EXPECT_THAT(refusal_of_choice("auto,ring"), testing::StartsWith("--plan: \"ring\" is no GLOB=WAY ("));
  EXPECT_THAT(refusal_of_choice("fc*=rnig"), testing::StartsWith("--plan: there is no way \"rnig\" (one of direct, "));
  EXPECT_THAT(refusal_of_choice("=ring"), testing::StartsWith("--plan: \"=ring\" names no tensor"));
  EXPECT_THAT(refusal_of_choice("auto:3"), testing::StartsWith("--plan: auto takes no \":3\""));
  EXPECT_THAT(refusal_of_choice("ddp:"), testing::StartsWith("--plan: '' is not a size"));
  EXPECT_THAT(refusal_of_choice("ddp:0"), testing::StartsWith("--plan: ddp:0 is not between"));
  EXPECT_THAT(refusal_of_choice("ddp:2GB"), testing::StartsWith("--plan: ddp:2GB is not between"));
  EXPECT_THAT(refusal_of_choice("ps:bsp+fp4"), testing::HasSubstr("no rows travel as \"fp4\" (one of none, bf16 and int8)"));
  EXPECT_THAT(refusal_of_choice("diloco"), testing::StartsWith("--plan: diloco does not say how many steps"));
  EXPECT_THAT(refusal_of_choice("diloco:4:5"),
              testing::StartsWith("--plan: diloco:4:5 does not say in how many fragments, at most one a step"));
  EXPECT_THAT(refusal_of_choice("diloco:4:1:0"), testing::StartsWith("--plan: diloco:4:1:0: the outer rate is not above 0"));
  EXPECT_THAT(refusal_of_choice("diloco:4:1:0.7:1"),
              testing::StartsWith("--plan: diloco:4:1:0.7:1: the outer momentum is not from 0 and below 1"));
  EXPECT_THAT(refusal_of_choice("diloco:4:1:0.7:x"), testing::StartsWith("--plan: diloco:4:1:0.7:x does not say the outer momentum"));
  EXPECT_THAT(refusal_of_choice("diloco:4:1:0.7:0:9"), testing::StartsWith("--plan: \"diloco:4:1:0.7:0:9\" says too much"));
  EXPECT_THAT(refusal_of_choice("local:8,fc*=factors"),
              testing::StartsWith("--plan: fc*=factors: a difference of parameters has no factors"));
  for (const char* way : {"owners", "hybrid:2", "servers:1"}) {
    EXPECT_THAT(refusal_of_choice(std::string("local:8,fc*=") + way), testing::HasSubstr("nobody serves, and nothing is divided")) << way;
  }
  for (const char* steps : {"local", "local:", "local:0", "local:-1", "local:8x", "local:99999999999"}) {
    EXPECT_THAT(refusal_of_choice(steps), testing::HasSubstr("does not say how many steps")) << steps;
  }
}

}  // namespace
}  // namespace shoal::exchange
