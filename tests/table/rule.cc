// Rules against plain loops in double, their names, and what a table makes of them.
#include "shoal/table/rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/table/tables.h"
#include "tests/net/members.h"

namespace shoal::table {
namespace {

TEST(Rule, a_name_says_all_of_it) {
  for (const char* text : {"sum", "sgd:0.1:0", "sgd:0.05:0.9", "adagrad:0.1:1e-10", "adam:0.001:0.9:0.999:1e-08", "adaptive-revision:0.1:1e-10"}) {
    EXPECT_EQ(name(rule_from(text)), text);
  }
  EXPECT_EQ(rule_from("sgd:0.1"), Rule::sgd(0.1));
  EXPECT_EQ(rule_from("adam:0.001"), Rule::adam(0.001));
}

TEST(Rule, what_is_none_is_refused_with_a_list) {
  for (const char* text : {"", "sgd", "sgd:", "sgd:x", "sgd:0.1:1", "sgd:-1", "sum:1", "adam:1:2",
                           "adam:0.1:0.9:0.9:-1", "sgd:0.1,", "rmsprop:0.1", "sgd:nan"}) {
    EXPECT_THROW(rule_from(text), Error) << text;
  }
}

TEST(Rule, no_step_goes_further_than_its_reach) {
  for (const Rule& rule : {Rule::sgd(0.1), Rule::adagrad(0.1), Rule::adam(0.1), Rule::adam(0.1, 0.5, 0.9)}) {
    std::vector<double> row{0}, state(state_width(rule, 1));
    for (const double gradient : {1e-6, 1e-6, 50.0, -3.0, 0.25, 0.0, 1e3}) {
      const double before = row[0];
      step<double>(rule, row, state, std::span(&gradient, 1), 1);
      EXPECT_LE(std::abs(row[0] - before), reach(rule, std::abs(gradient)) * (1 + 1e-9)) << name(rule) << " at " << gradient;
    }
  }
  EXPECT_EQ(reach(Rule{}, 3), 3);
  EXPECT_DOUBLE_EQ(reach(Rule::sgd(0.1, 0.9), 2), 2);
}

TEST(Rule, steps_follow_the_formulas) {
  const std::vector<double> gradients{0.5, -1, 2};
  constexpr double kRate = 0.1;
  double sgd = 1, momentum = 1, buffer = 0, adagrad = 1, squares = 0, adam = 1, m = 0, v = 0;
  struct Tried {
    Rule rule;
    std::vector<double> row{1}, state;
  };
  std::vector<Tried> tried;
  for (const Rule& rule : {Rule::sgd(kRate), Rule::sgd(kRate, 0.9), Rule::adagrad(kRate), Rule::adam(kRate)}) {
    tried.push_back({rule, {1}, std::vector<double>(state_width(rule, 1))});
  }
  int t = 0;
  for (const double g : gradients) {
    ++t;
    sgd -= kRate * g;
    buffer = 0.9 * buffer + g;
    momentum -= kRate * buffer;
    squares += g * g;
    adagrad -= kRate * g / (std::sqrt(squares) + 1e-10);
    m = 0.9 * m + (1 - 0.9) * g;
    v = 0.999 * v + (1 - 0.999) * g * g;
    adam -= kRate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    for (Tried& one : tried) step<double>(one.rule, one.row, one.state, std::vector<double>{3 * g}, 3);
  }
  EXPECT_DOUBLE_EQ(tried[0].row[0], sgd);
  EXPECT_DOUBLE_EQ(tried[1].row[0], momentum);
  EXPECT_DOUBLE_EQ(tried[2].row[0], adagrad);
  EXPECT_NEAR(tried[3].row[0], adam, 1e-14);
}

// Goal: under bsp a clock is one step with the mean of the gradients; a rate holds from the clock of who set it on.
TEST(Rule, a_whole_clock_is_one_step_with_the_mean) {
  const auto jobs = net::join_all(3);
  const std::vector<Key> keys{1, 2};
  net::each(3, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto rows = tables.worker().open<double>({.name = "w", .consistency = Bsp{}, .initial = Initial::constant(10), .rule = Rule::sgd(0.5, 0.5)});
    std::vector<double> values(2);
    double expected = 10, buffer = 0;
    for (int clock = 0; clock < 6; ++clock) {
      rows.read(keys, values);
      EXPECT_EQ(values, std::vector<double>(2, expected)) << "clock " << clock;
      const double rate = clock < 3 ? 0.5 : 0.25;
      if (rank == 1 && clock == 3) rows.rule(Rule::sgd(0.25, 0.5));
      rows.add(keys, std::vector<double>(2, rank + clock));  // mean 1 + clock
      rows.tick();
      buffer = 0.5 * buffer + (1 + clock);
      expected -= rate * buffer;
    }
    rows.barrier();
  });
}

// Goal: with a backup the others go on without a member that does not come; it goes on at their clock, and what it added late is counted.
TEST(Rule, a_clock_is_complete_without_its_backups) {
  const auto jobs = net::join_all(3);
  const std::vector<Key> keys{7};
  std::atomic<int> done{0};
  net::each(3, [&](net::Rank rank) {
    Tables tables(jobs[rank]->transport());
    auto rows = tables.worker().open<float>({.name = "w", .consistency = Bsp{1}, .rule = Rule::sgd(1)});
    std::vector<float> values(1);
    if (rank == 2) {
      rows.add(keys, std::vector<float>{1000});
      for (int n = done; n < 2; n = done) done.wait(n);
      rows.tick();
    } else {
      for (int clock = 0; clock < 5; ++clock) {
        rows.read(keys, values);
        EXPECT_EQ(values[0], static_cast<float>(-clock));
        rows.add(keys, std::vector<float>{1});
        rows.tick();
      }
      ++done;
      done.notify_all();
    }
    rows.barrier();
    EXPECT_EQ(rows.clock(), 5);
    rows.read(keys, values);
    EXPECT_EQ(values[0], -5.0F);
    EXPECT_EQ(rows.dropped(), rank == 2 ? 1u : 0u);
    EXPECT_EQ(rows.telemetry().line("w").find("; clocks of this member that came too late: 1") != std::string::npos, rank == 2);
    rows.barrier();
  });
}

TEST(Rule, what_does_not_go_together_is_refused) {
  const auto jobs = net::join_all(1);
  Tables tables(jobs[0]->transport());
  EXPECT_THROW(tables.worker().open<float>({.name = "a", .consistency = Bsp{1}}), Error);
  EXPECT_THROW(tables.worker().open<std::int64_t>({.name = "b", .rule = Rule::sgd(1)}), Error);
  auto rows = tables.worker().open<float>({.name = "c", .rule = Rule::sgd(1)});
  EXPECT_THROW(rows.rule(Rule::adam(1)), Error);
  EXPECT_THROW(rows.rule(Rule::sgd(1, 0.9)), Error);
}

}  // namespace
}  // namespace shoal::table
