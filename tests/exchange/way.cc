// Goal: a way's name is read whole or refused with what is wrong; its price has the bytes that really travel and the closed form of the
// collectives that it consists of. Oracle: what members hand to the network when they do it.
#include "shoal/exchange/way.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "shoal/core/event.h"
#include "tests/exchange/members.h"

namespace shoal::exchange {
namespace {

std::string refusal_of_way(const std::string& name) {
  try {
    way_named(name);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument);
    return e.what();
  }
  return "accepted";
}

TEST(Way, names_that_are_none_are_refused_with_those_that_are) {
  EXPECT_THAT(refusal_of_way("carrier-pigeon"), testing::StartsWith("plan: there is no way \"carrier-pigeon\" (one of direct, "));
  EXPECT_THAT(refusal_of_way(""), testing::HasSubstr("there is no way \"\""));
  EXPECT_THAT(refusal_of_way("ring:3"), testing::HasSubstr("there is no way \"ring:3\""));
  EXPECT_EQ(refusal_of_way("factors:2"), "plan: the way \"factors:2\": wrong number of arguments (it is spelled factors)");
}

TEST(Way, only_those_that_are_exact_are_chosen_by_themselves) {
  for (const auto& family : way_families()) {
    if (family.spelling.find(':') != std::string::npos) continue;
    EXPECT_EQ(way_named(family.spelling)->exact(), family.exact) << family.spelling;
    EXPECT_EQ(way_named(family.spelling)->name(), family.spelling);
  }
}

// One tensor of 256 x 300, of which each member touches 20 rows, or has 20 samples.
TensorSpec tensor() {
  return {.name = "weight", .count = 76'800, .rows = 20, .outputs = 256, .width = 300, .touched = 20};
}

double really_sent(const std::string& way, std::uint32_t ranks) {
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.tensors = {tensor()};
  plan.units = {{{0}, way, 16384, 0, 0, 0}};
  Members members(plan);
  std::vector<float> values(76'800), inputs(20 * 300, 1), outputs(20 * 256, 1);
  std::fill_n(values.begin(), 20 * 300, 1.0F);
  const auto bytes = [](const std::vector<float>& of) { return reinterpret_cast<const std::byte*>(of.data()); };
  Events::local().drain();
  Events::local().enable(true);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    members[r].begin(1);
    if (way == kByFactors) {
      members[r].produced(0, factor::Pair{20, bytes(inputs), bytes(outputs), nullptr});
    } else {
      members[r].produced(0, values.data());
    }
  }
  for (std::uint32_t r = 0; r < ranks; ++r) members[r].commit();
  Events::local().enable(false);
  double most = 0;
  for (const auto& event : Events::local().drain()) {
    if (event.kind == EventKind::exchange) most = std::max(most, event.value);
  }
  return most;
}

TEST(Way, is_priced_with_the_bytes_that_its_members_send) {
  for (const std::uint32_t ranks : {2u, 3u, 4u}) {
    for (const std::string way : {"direct", "ring", "gather", "factors", "rows", "bf16", "int8", "topk:0.01", "powersgd:2"}) {
      const auto spec = tensor();
      const Cost cost = way_named(way)->cost({.first = spec, .count = spec.count, .ranks = ranks, .link = {}, .multiply_rate = 1e9});
      EXPECT_NEAR(really_sent(way, ranks), cost.sent, 0.01 * cost.sent) << way << " between " << ranks;
      EXPECT_GE(cost.link, cost.sent / collective::LinkModel().rate) << way;
    }
  }
}

}  // namespace
}  // namespace shoal::exchange
