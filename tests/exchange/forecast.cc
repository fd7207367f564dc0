// Goal: a forecast agrees with itself and with what can be worked by hand.
#include "shoal/exchange/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "shoal/factor/wire.h"

namespace shoal::exchange {
namespace {

// Six layers of 1024 x 1024: 24 MB of gradients, 12.6 MFLOP forward a sample.
Model model() {
  Model model{"square", {}};
  for (int l = 0; l < 6; ++l) {
    const std::string name = "layer" + std::to_string(l);
    model.layers.push_back({name, LayerKind::fc, {{name + ".weight", 1 << 20}}, 2.0 * (1 << 20), 1024, 1024, 1});
  }
  return model;
}

Cluster cluster(double rate, std::uint32_t members = 4) {
  Cluster c{members, {40e9, {100e-6, rate, 8e9}}, 32};
  return c;
}

Choice by(const char* text) { return parse_choice(text, "test"); }

TEST(Forecast, one_member_only_computes) {
  const auto it = foresee(model(), cluster(1e8, 1), by("auto"));
  EXPECT_DOUBLE_EQ(it.seconds, 3 * model().forward_flops() * 32 / 40e9);
  EXPECT_EQ(it.bytes, 0);
  EXPECT_DOUBLE_EQ(it.speedup(), 1);
}

TEST(Forecast, a_member_sends_what_its_ways_send) {
  const double gradients = 6.0 * 4 * (1 << 20);
  EXPECT_DOUBLE_EQ(foresee(model(), cluster(1e8), by("ring")).bytes, 1.5 * gradients);
  EXPECT_DOUBLE_EQ(foresee(model(), cluster(1e8), by("factors")).bytes, 3 * 6 * (16.0 + factor::wire_bytes({1024, 1024}, 32)));  // pairs, and ahead of them how long
  EXPECT_DOUBLE_EQ(foresee(model(), cluster(1e8), by("local:8")).bytes, foresee(model(), cluster(1e8), by("auto,*=ring")).bytes / 8);
}

TEST(Forecast, local_steps_pay_the_link_once_in_so_many_iterations) {
  const auto every = foresee(model(), cluster(1e7), by("local:1")), eighth = foresee(model(), cluster(1e7), by("local:8"));
  EXPECT_DOUBLE_EQ(every.seconds, every.computing + every.on_the_link);
  EXPECT_DOUBLE_EQ(eighth.seconds, eighth.computing + eighth.on_the_link / 8);
}

TEST(Forecast, fragments_hide_behind_the_steps_until_the_next_ones_turn) {
  const auto blocking = foresee(model(), cluster(1e7), by("diloco:6:1")),
             in_turns = foresee(model(), cluster(1e7), by("diloco:6:6"));
  EXPECT_EQ(in_turns.plan.turns(), 6u);
  EXPECT_NEAR(in_turns.seconds, std::max(blocking.computing, blocking.on_the_link / 6),
              1e-3 * blocking.seconds);  // a layer a step
  EXPECT_DOUBLE_EQ(in_turns.bytes, blocking.bytes);
  const auto fast = foresee(model(), cluster(1e9), by("diloco:6:6"));
  EXPECT_DOUBLE_EQ(fast.seconds, fast.computing);
}

TEST(Forecast, members_that_only_add_train_nothing) {
  const auto it = foresee(model(), cluster(1e8, 5), by("servers:1"));
  EXPECT_EQ(it.workers, 4u);
  EXPECT_DOUBLE_EQ(it.speedup(), 4 * it.computing / it.seconds);
  EXPECT_EQ(forecast(model(), cluster(1e8, 5), by("servers:3")).scaling.front().members, 4u);
  EXPECT_EQ(forecast(model(), cluster(1e8, 5), by("auto,layer0*=servers:1")).scaling.front().members, 2u);
}

TEST(Forecast, ways_that_are_not_exact_say_so) {
  std::vector<std::string> lossy;
  for (const auto& row : forecast(model(), cluster(25e6), by("auto")).rows) {
    if (!row.exact) lossy.push_back(row.choice);
  }
  EXPECT_EQ(lossy, (std::vector<std::string>{"bf16", "int8", "powersgd:4", "topk:0.001", "local:8", "diloco:32:4"}));
}

TEST(Forecast, the_regime_follows_the_rate) {
  EXPECT_EQ(regime_of(foresee(model(), cluster(1e7), by("wfbp"))), Regime::bytes);
  EXPECT_EQ(regime_of(foresee(model(), cluster(4e9), by("wfbp"))), Regime::order);
  auto busy = cluster(4e9);
  busy.samples = 3200;
  EXPECT_EQ(regime_of(foresee(model(), busy, by("wfbp"))), Regime::computing);
}

TEST(Forecast, each_rate_is_where_its_answer_changes) {
  const auto f = forecast(model(), cluster(25e6), by("wfbp"));
  ASSERT_EQ(f.break_even.size(), 5u);
  const auto speedup = [](double rate, const char* choice) { return foresee(model(), cluster(rate), by(choice)).speedup(); };
  const double as_ddp = f.break_even[0].rate, nine_of_ten = f.break_even[3].rate;
  EXPECT_GT(speedup(as_ddp, "ddp"), 1);
  EXPECT_LE(speedup(0.98 * as_ddp, "ddp"), 1);
  EXPECT_GE(speedup(nine_of_ten, "wfbp"), 3.6);
  EXPECT_LT(speedup(0.98 * nine_of_ten, "wfbp"), 3.6);
}

// Ways of a few tensors have a row where the model has such tensors and so many members can go so; what was asked for has one anyway.
TEST(Forecast, each_way_has_a_row_where_something_goes_by_it) {
  const auto choices = [](const Model& model, std::uint32_t members, const char* asked) {
    std::set<std::string> found;
    for (const auto& row : forecast(model, cluster(25e6, members), by(asked)).rows) EXPECT_TRUE(found.insert(row.choice).second) << row.choice;
    return found;
  };
  const std::set<std::string> always{"no overlap", "whole, by servers", "ddp:25MB", "ddp:1MB",     "wfbp",    "poseidon",    "p3",   "auto",
                                     "owners",     "bf16",              "int8",     "topk:0.001",  "local:8", "diloco:32:4", "bound"};
  const auto with = [&](std::set<std::string> more) {
    more.insert(always.begin(), always.end());
    return more;
  };
  EXPECT_EQ(choices(model(), 4, "auto"), with({"factors", "hybrid:1", "powersgd:4"}));
  EXPECT_EQ(choices(model(), 5, "ring"), with({"factors", "hybrid:1", "powersgd:4", "ring"}));
  EXPECT_EQ(choices(model(), 1, "auto").count("factors"), 0u) << "nothing travels";
  Model text{"text", {}};
  text.layers.push_back({"embed", LayerKind::embedding, {{"embed.weight", 1 << 20}}, 0, 1, 256, 8});
  EXPECT_EQ(choices(text, 4, "rows"), with({"rows"}));
}

TEST(Forecast, layers_are_divided_among_the_best_number_of_groups) {
  std::set<std::string> best;
  for (const double rate : {5e6, 125e6, 1e9, 1e10}) {
    const auto all = cluster(rate, 12);
    double least = 1e9;
    std::string groups;
    for (const char* choice : {"hybrid:1", "hybrid:2", "hybrid:3", "hybrid:4", "hybrid:6"}) {
      const double seconds = foresee(model(), all, by(choice)).seconds;
      if (seconds < least) least = seconds, groups = choice;
    }
    best.insert(groups);
    for (const auto& row : forecast(model(), all, by("auto")).rows) {
      if (row.choice.starts_with("hybrid:")) {
        EXPECT_EQ(row.choice, groups) << rate;
      }
    }
  }
  EXPECT_GT(best.size(), 1u) << "the first is not always the best";
}

TEST(Forecast, the_best_row_is_auto_and_all_lie_above_the_bound) {
  for (const double rate : {5e6, 25e6, 125e6, 1e9}) {
    const auto f = forecast(model(), cluster(rate), by("ring"));
    double automatic = 0, bound = 0;
    for (const auto& row : f.rows) {
      if (row.choice == "auto") automatic = row.seconds;
      if (row.choice == "bound") bound = row.seconds;
    }
    for (const auto& row : f.rows) {
      if (row.choice == "bound" || !row.exact) continue;
      EXPECT_LE(automatic, 1.011 * row.seconds) << row.choice;
      const bool whole_gradients = row.choice != "auto" && row.choice != "poseidon" && row.choice != "factors" && !row.choice.starts_with("hybrid:");
      if (whole_gradients) {
        EXPECT_GE(row.seconds, 0.99 * bound) << row.choice;
      }
    }
    EXPECT_EQ(f.scaling.size(), 7u);
    EXPECT_DOUBLE_EQ(f.scaling.front().speedup, 1);
    EXPECT_DOUBLE_EQ(f.scaling[2].seconds, f.chosen.seconds);
  }
}

}  // namespace
}  // namespace shoal::exchange
