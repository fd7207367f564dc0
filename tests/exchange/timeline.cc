// Goal: an iteration is foreseen as the closed forms of research/sync.md 7.4 say. Method: random models; the forms are the oracle.
#include "shoal/exchange/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace shoal::exchange {
namespace {

// Layers in forward order, each with its forward and backward time and the time of its gradient on the link.
struct Layers {
  std::vector<double> f, b, c;
  double F = 0, B = 0, C = 0;
};

// 3 to 40 layers with heavy-tailed gradients.
Layers random_model(std::mt19937_64& random) {
  Layers model;
  const auto layers = std::uniform_int_distribution<int>(3, 40)(random);
  std::uniform_real_distribution<double> compute(0.1, 1);
  std::lognormal_distribution<double> gradient(-1, 1.5);
  for (int l = 0; l < layers; ++l) {
    const double f = compute(random), c = gradient(random);
    model.f.push_back(f);
    model.b.push_back(2 * f);
    model.c.push_back(c);
    model.F += f;
    model.B += 2 * f;
    model.C += c;
  }
  return model;
}

// The last layer's gradient is first: units stand in the order of production.
std::vector<Work> work_of(const Layers& model, std::uint32_t pieces) {
  std::vector<Work> units;
  double ready = 0, needed = model.F;
  for (std::size_t l = model.f.size(); l-- > 0;) {
    ready += model.b[l];
    needed -= model.f[l];
    units.push_back({.ready = ready, .needed = needed, .priority = static_cast<std::uint32_t>(l), .link = model.c[l], .bytes = model.c[l], .pieces = pieces});
  }
  return units;
}

// Wait-free backpropagation: F + max_l (B_{>=l} + C_{<=l}).
double in_order_of_production(const Layers& model) {
  double longest = 0, below = 0, above = model.B;
  for (std::size_t l = 0; l < model.f.size(); ++l) {
    below += model.c[l];
    longest = std::max(longest, above + below);
    above -= model.b[l];
  }
  return model.F + longest;
}

// In order of priority: max(C, max_l (F_{>=l} + B_{>=l} + C_{<=l})), as if the link were cut infinitely fine.
double in_order_of_priority(const Layers& model) {
  double longest = model.C, below = 0, above = model.F + model.B;
  for (std::size_t l = 0; l < model.f.size(); ++l) {
    below += model.c[l];
    longest = std::max(longest, above + below);
    above -= model.f[l] + model.b[l];
  }
  return longest;
}

TEST(Timeline, in_order_of_production_it_is_the_closed_form) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto model = random_model(random);
    const double expected = in_order_of_production(model);
    for (const std::uint32_t pieces : {1u, 7u}) {
      EXPECT_NEAR(foresee(work_of(model, pieces), model.F, model.B, Order::fifo).seconds, expected, 1e-9 * expected) << i;
    }
  }
}

TEST(Timeline, in_order_of_priority_it_comes_to_the_closed_form_as_pieces_become_fine) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const auto model = random_model(random);
    const double expected = in_order_of_priority(model);
    const double coarse = foresee(work_of(model, 1), model.F, model.B, Order::priority).seconds;
    const double fine = foresee(work_of(model, 512), model.F, model.B, Order::priority).seconds;
    EXPECT_NEAR(fine, expected, 0.01 * expected) << i;
    EXPECT_GE(coarse, expected * (1 - 1e-9)) << i;  // whole units: whoever is urgent waits for the one before
  }
}

// Nobody is faster than the link or the thread alone; priority gains at most what forward can hide (research/sync.md 0).
TEST(Timeline, priority_gains_at_most_what_the_next_forward_pass_hides) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto model = random_model(random);
    const double fifo = foresee(work_of(model, 64), model.F, model.B, Order::fifo).seconds;
    const double priority = foresee(work_of(model, 64), model.F, model.B, Order::priority).seconds;
    EXPECT_GE(priority, std::max(model.F + model.B, model.C) * (1 - 1e-9));
    EXPECT_LE(fifo / priority, 1 + model.F / (model.F + model.B) + 1e-9) << i;
    EXPECT_LE(priority, fifo * 1.02) << i;  // a piece that has begun is finished first
  }
}

TEST(Timeline, what_was_waited_adds_up_to_the_iteration) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 50; ++i) {
    const auto model = random_model(random);
    auto units = work_of(model, 4);
    for (auto& unit : units) unit.thread = 0.1;
    for (const auto order : {Order::fifo, Order::priority}) {
      const auto line = foresee(units, model.F, model.B, order);
      double waited = 0;
      for (double w : line.waited) waited += w;
      EXPECT_NEAR(line.seconds, model.F + model.B + waited, 1e-9 * line.seconds);
      EXPECT_GE(waited, 0.1 * static_cast<double>(units.size()) * (1 - 1e-9));
    }
  }
}

// A deep layer is there early and takes long to step: by priority that hides behind what the first layer waits for, and so it does at a gate. Behind a barrier in order
// of production likewise.
TEST(Timeline, what_is_here_is_stepped_while_others_are_awaited) {
  const Work deep{.ready = 0, .needed = 1, .priority = 1, .link = 1, .thread = 5};
  const Work first{.ready = 2, .needed = 0, .priority = 0, .link = 6, .thread = 1};
  for (const auto order : {Order::fifo, Order::priority}) {
    const auto line = foresee(std::vector{deep, first}, 1, 2, order);
    EXPECT_DOUBLE_EQ(line.seconds, 2 + 6 + 1 + 1);
    EXPECT_DOUBLE_EQ(line.waited[0], 5);
    EXPECT_DOUBLE_EQ(line.waited[1], 2);
  }
  const Work on_its_way{.ready = 2, .needed = 0.5, .priority = 2, .link = 2, .thread = 5};  // not here when the step begins, nor at the first gate; at the second
  const Work next{.ready = 2, .needed = 0, .priority = 0, .link = 1, .thread = 2};
  const Work last{.ready = 2, .needed = 0.25, .priority = 3, .link = 10, .thread = 1};
  const auto line = foresee(std::vector{next, on_its_way, last}, 1, 2, Order::priority);
  EXPECT_DOUBLE_EQ(line.waited[0], 3);
  EXPECT_DOUBLE_EQ(line.waited[1], 5);
  EXPECT_DOUBLE_EQ(line.seconds, 2 + 13 + 1 + 0.75);
}

// A server adds between the way there and the way back: whole, one after the other; in pieces, side by side.
TEST(Timeline, a_server_that_adds_is_hidden_by_slicing) {
  const Work whole{.link = 2, .add = 1};
  EXPECT_DOUBLE_EQ(foresee(std::vector{whole}, 0, 0, Order::fifo).seconds, 3);
  Work sliced = whole;
  sliced.pieces = 100;
  EXPECT_NEAR(foresee(std::vector{sliced}, 0, 0, Order::fifo).seconds, 2, 1e-9);
}

// Goal: a link that saves up while it is idle hides as much of what is sent as it has saved, never more than its rate allows in the long run. Method: one unit
// with its closed form; random models, between the same without and what no link can beat.
TEST(Timeline, what_a_link_saves_up_is_made_up_for) {
  const double F = 1, B = 2;
  const std::vector<std::array<double, 3>> cases = {{0.5, 1, F + B}, {2, 0.5, F + B + 1.5}, {2, 5, F + B}, {5, 9, 5}, {5, 1, F + B + 4}};  // on the link, saves, an iteration
  for (const auto& [link, saves, expected] : cases) {
    const std::vector<Work> one = {{.ready = B, .link = link, .bytes = link}};
    EXPECT_NEAR(foresee(one, F, B, Order::fifo, {.saves = saves}).seconds, expected, 0.02) << link << " " << saves;
  }
  const std::vector<Work> one = {{.ready = B, .link = 5, .bytes = 5}};  // where the link is idle for two seconds more, or busy for one
  EXPECT_NEAR(foresee(one, F, B, Order::fifo, {.saves = 9, .besides = 2}).seconds, F + B, 0.02);
  EXPECT_NEAR(foresee(one, F, B, Order::fifo, {.saves = 9, .besides = -1}).seconds, 5 + 1, 0.02);
  const std::vector<Work> late = {{.ready = B, .link = 5, .bytes = 1}};  // four of them are latency
  EXPECT_NEAR(foresee(late, F, B, Order::fifo, {.saves = 9}).seconds, F + B + 4, 0.02);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const auto model = random_model(random);
    const auto units = work_of(model, 8);
    for (const Order order : {Order::fifo, Order::priority}) {
      double before = foresee(units, model.F, model.B, order).seconds;
      for (const double saves : {0.1, 1.0, 10.0, 1000.0}) {
        const double seconds = foresee(units, model.F, model.B, order, {.saves = saves}).seconds;
        EXPECT_LE(seconds, before * (order == Order::fifo ? 1.01 : 1.06)) << i;  // pieces that are sooner may take another's turn
        EXPECT_GE(seconds, std::max(model.F + model.B, model.C) * 0.999);
        before = seconds;
      }
    }
  }
}

// What is urgent stands behind what others of the link's senders have under way, and only where there is something: by priority the last unit never does.
TEST(Timeline, what_has_left_the_link_stands_behind_others_only_where_they_wait_there) {
  std::vector<Work> units = {{.ready = 1, .needed = 0.5, .priority = 1, .link = 4, .behind = 2, .pieces = 4}, {.ready = 2, .priority = 0, .link = 1, .behind = 2}};
  EXPECT_DOUBLE_EQ(foresee(units, 1, 2, Order::priority).arrived[1], 3 + 2) << "three pieces of the other one wait";
  EXPECT_DOUBLE_EQ(foresee(units, 1, 2, Order::priority).arrived[0], 6) << "nothing waits any more";
  units[0].link = 0.5;
  EXPECT_DOUBLE_EQ(foresee(units, 1, 2, Order::priority).arrived[1], 3);
}

// A piece is queued before it is on the link, and what becomes urgent then comes behind it. In order of production that makes no difference, and
// by priority none to when all are there.
TEST(Timeline, what_is_queued_is_not_overtaken) {
  const std::vector<Work> units = {{.ready = 0, .needed = 0.5, .priority = 1, .link = 8, .pieces = 8}, {.ready = 5, .priority = 0, .link = 4, .pieces = 4}};
  const auto arrived = [&](double queued) { return foresee(units, 1, 5, Order::priority, {.queued = queued}).arrived; };
  EXPECT_EQ(arrived(0), (std::vector{12.0, 9.0}));
  EXPECT_EQ(arrived(1.5), (std::vector{12.0, 11.0})) << "two pieces have gone in, of which one begins";
  EXPECT_EQ(arrived(3), (std::vector{8.0, 12.0})) << "all others have gone in";
  std::mt19937_64 random(11);
  for (int i = 0; i < 200; ++i) {
    const auto model = random_model(random);
    const auto in_order = work_of(model, 8);
    EXPECT_EQ(foresee(in_order, model.F, model.B, Order::fifo, {.queued = 0.5}).arrived, foresee(in_order, model.F, model.B, Order::fifo).arrived) << i;
    const auto last_arrives = [&](double queued) {
      const auto line = foresee(in_order, model.F, model.B, Order::priority, {.queued = queued});
      return *std::max_element(line.arrived.begin(), line.arrived.end());
    };
    EXPECT_NEAR(last_arrives(1e9), last_arrives(0), 1e-9) << i << ": the link has as much to do";
  }
}

// While a unit's last steps get there, the next one is on the link.
TEST(Timeline, latency_hides_behind_what_else_the_link_has_to_do) {
  const Work unit{.link = 1.5, .latency = 0.5};
  const auto line = foresee(std::vector(3, unit), 0, 0, Order::fifo);
  EXPECT_EQ(line.arrived, (std::vector{1.5, 2.5, 3.5}));
  EXPECT_DOUBLE_EQ(foresee(std::vector{Work{.link = 3, .latency = 1, .add = 1}}, 0, 0, Order::fifo).seconds, 4) << "there, added, and back";
}

TEST(Timeline, no_units_is_computing_alone) { EXPECT_DOUBLE_EQ(foresee({}, 1, 2, Order::priority).seconds, 3); }

}  // namespace
}  // namespace shoal::exchange
