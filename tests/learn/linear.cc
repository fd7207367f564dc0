// Goal: steps go down the gradient of the whole loss, classes that can be separated are, any number of members takes the same steps, and a run that
// goes on has the bits of one that was not interrupted.
#include "shoal/learn/linear.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/learn/members.h"
#include "tests/learn/separable.h"

namespace shoal::learn {
namespace {

Begin linear(const LinearOptions& options, std::uint32_t classes, std::uint32_t count = 600) {
  return [=](net::Transport& transport) {
    return std::make_unique<Linear>(transport, separable(transport.rank(), transport.size(), classes, count), options);
  };
}

// One step over all rows at once, from weights that are not zero. Oracle: central differences of the loss with its penalty.
TEST(Linear, a_step_is_down_the_gradient) {
  for (const std::uint32_t classes : {2u, 5u}) {
    LinearOptions options;
    options.batch = 1000;
    options.step = {0.01, false};
    options.l2 = 0.05;
    const LabelledRows rows = separable(0, 1, classes, 50);
    const std::size_t width = width_for(classes);
    Tensor weights{{rows.columns, width}, std::vector<float>(rows.columns * width)}, intercept{{width}, std::vector<float>(width)};
    for (std::size_t i = 0; i < weights.values.size(); ++i) weights.values[i] = static_cast<float>(uniform(9, i, 0, 0)) - 0.5f;
    for (std::size_t i = 0; i < width; ++i) intercept.values[i] = static_cast<float>(uniform(9, i, 0, 1)) - 0.5f;
    const Learnt learnt = learnt_by(1, 2, linear(options, classes, 50), 1, {{"weights", weights}, {"intercept", intercept}});

    const std::vector<double> w(weights.values.begin(), weights.values.end()), b(intercept.values.begin(), intercept.values.end());
    EXPECT_NEAR(learnt.figure("training log loss"), mean_loss(rows.own, w, b, classes), 1e-5);
    const double curvature = classes == 2 ? 0.25 : 0.5, step = 0.01 / smoothness(rows.first, classes, options.batch), nudge = 1e-5;
    for (std::size_t i = 0; i < w.size(); ++i) {
      auto above = w, below = w;
      above[i] += nudge;
      below[i] -= nudge;
      const double gradient = (mean_loss(rows.own, above, b, classes) - mean_loss(rows.own, below, b, classes)) / (2 * nudge) + options.l2 * w[i];
      EXPECT_NEAR((w[i] - learnt.model.at("weights").values[i]) / step, gradient, 1e-3) << i;
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
      auto above = b, below = b;
      above[i] += nudge;
      below[i] -= nudge;
      const double gradient = (mean_loss(rows.own, w, above, classes) - mean_loss(rows.own, w, below, classes)) / (2 * nudge);
      EXPECT_NEAR((b[i] - learnt.model.at("intercept").values[i]) / (0.01 / curvature), gradient, 1e-3) << i;
    }
  }
}

TEST(Linear, classes_that_can_be_separated_are) {
  for (const std::uint32_t classes : {2u, 4u}) {
    for (const auto& [consistency, sharing] : {std::pair{"bsp", "rows"},
                                               {"ssp:2", "rows"},
                                               {"essp:2", "rows"},
                                               {"async", "auto"},
                                               {"bsp", "factors"},
                                               {"ssp:2", "factors:halton"}}) {
      for (const net::Rank members : {1u, 3u}) {
        SCOPED_TRACE(std::to_string(members) + " members, " + consistency + ", " + sharing);
        LinearOptions options;
        options.batch = 30;
        options.consistency = table::consistency_from(consistency);
        options.sharing = sharing_from(sharing);
        const Learnt learnt = learnt_by(members, 30, linear(options, classes));
        EXPECT_GE(learnt.figure("held-out accuracy"), 0.95);
        EXPECT_LT(learnt.figure("held-out log loss"), 0.3);
      }
    }
  }
}

// Sums of a minibatch are formed in another order by other members: 32-bit rounding, through 3 epochs of 16 clocks.
TEST(Linear, any_number_of_members_takes_the_same_steps_but_for_rounding) {
  LinearOptions options;
  options.batch = 30;
  options.l2 = 1e-3;
  const Learnt alone = learnt_by(1, 3, linear(options, 4));
  for (const net::Rank members : {2u, 5u}) {
    const Learnt learnt = learnt_by(members, 3, linear(options, 4));
    for (const char* name : {"weights", "intercept"}) {
      const auto &one = alone.model.at(name).values, &other = learnt.model.at(name).values;
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-4) << name << " " << i;
    }
    EXPECT_NEAR(alone.figure("held-out log loss"), learnt.figure("held-out log loss"), 1e-5);
  }
}

TEST(Linear, under_bsp_two_runs_have_the_same_bits_and_so_has_one_that_goes_on) {
  LinearOptions options;
  options.batch = 30;
  options.l2 = 1e-3;
  for (const auto& [members, sharing] : {std::pair{1u, "auto"}, {3u, "rows"}, {3u, "factors"}}) {
    options.sharing = sharing_from(sharing);
    const auto begin = linear(options, 3);
    const Learnt whole = learnt_by(members, 5, begin), half = learnt_by(members, 2, begin), rest = learnt_by(members, 5, begin, 2, half.model);
    expect_same_bits(whole.model, learnt_by(members, 5, begin).model);
    expect_same_bits(rest.model, whole.model);
    EXPECT_EQ(rest.figure("held-out log loss"), whole.figure("held-out log loss"));
  }
}

// Factors of a clock are added in the order of ranks, whichever way they came.
TEST(Linear, factors_give_the_same_bits_over_any_overlay_and_the_sums_of_rows) {
  LinearOptions options;
  options.batch = 30;
  options.l2 = 1e-3;
  options.sharing = sharing_from("rows");
  const Learnt rows = learnt_by(4, 3, linear(options, 4));
  options.sharing = sharing_from("factors");
  const Learnt factors = learnt_by(4, 3, linear(options, 4));
  for (std::size_t i = 0; i < rows.model.at("weights").values.size(); ++i) {
    EXPECT_NEAR(rows.model.at("weights").values[i], factors.model.at("weights").values[i], 1e-5);
  }
  for (const char* sharing : {"factors:halton", "factors:fitted:1"}) {
    options.sharing = sharing_from(sharing);
    expect_same_bits(learnt_by(4, 3, linear(options, 4)).model, factors.model);
  }
}

TEST(Linear, sharing_is_read_as_it_is_named) {
  for (const char* text : {"auto", "rows", "factors", "factors:halton", "factors:fitted:3"}) EXPECT_EQ(name(sharing_from(text)), text);
  for (const char* text : {"", "row", "factors:", "factors:fitted", "factors:fitted:0", "factors:fitted:2x", "factors:fitted:-1"}) {
    EXPECT_THROW(sharing_from(text), Error) << text;
  }
  LinearOptions options;
  options.sharing = sharing_from("factors");
  options.consistency = table::Async{};
  auto jobs = net::join_all(1);
  EXPECT_THROW(Linear(jobs[0]->transport(), separable(0, 1, 3), options), Error);
}

// Goal: rows that travel as bf16 or int8 end where exact ones do, through decay, which multiplies all rows at the end of each epoch.
TEST(Linear, rounded_rows_learn_what_exact_ones_do) {
  LinearOptions options;
  options.batch = 30;
  options.l2 = 1e-2;
  const Learnt exact = learnt_by(3, 20, linear(options, 4));
  for (const table::Encoding encoding : {table::Encoding::bf16, table::Encoding::int8}) {
    options.encoding = encoding;
    const Learnt rounded = learnt_by(3, 20, linear(options, 4));
    EXPECT_NEAR(rounded.figure("held-out log loss"), exact.figure("held-out log loss"), 0.01) << table::name(encoding);
    EXPECT_NEAR(rounded.figure("training log loss"), exact.figure("training log loss"), 0.01) << table::name(encoding);
  }
}

// Weights shrink by a thousandth in all within an epoch: the scalar is taken over more than once, and nobody loses digits.
TEST(Linear, strong_decay_is_exact_to_rounding) {
  LinearOptions options;
  options.batch = 10;
  options.step = {0.5, false};
  options.l2 = 0.3;
  const Learnt alone = learnt_by(1, 2, linear(options, 3)), shared = learnt_by(3, 2, linear(options, 3));
  for (std::size_t i = 0; i < alone.model.at("weights").values.size(); ++i) {
    EXPECT_NEAR(alone.model.at("weights").values[i], shared.model.at("weights").values[i], 1e-5);
  }
}

TEST(Linear, probabilities_survive_any_scores) {
  std::vector<double> two(2), three(3);
  softmax(std::vector<double>{0.3}, two);
  EXPECT_NEAR(two[1], 1 / (1 + std::exp(-0.3)), 1e-15);
  EXPECT_DOUBLE_EQ(two[0] + two[1], 1);
  softmax(std::vector<double>{-1e308}, two);
  EXPECT_EQ(two, (std::vector<double>{1, 0}));
  softmax(std::vector<double>{1000, 1000, -1e308}, three);
  EXPECT_EQ(three, (std::vector<double>{0.5, 0.5, 0}));
}

// Of rows e_1 and e_2 in turns the mean x x^T has eigenvalues 1/2 and 1/2; R is 1.
TEST(Linear, smoothness_is_that_of_rows_worked_by_hand) {
  data::SparseRows rows;
  rows.width = 2;
  const std::uint32_t columns[] = {0, 1};
  const float one = 1;
  for (int i = 0; i < 10; ++i) rows.append(data::SparseRow{0, std::span(&columns[i % 2], 1), std::span(&one, 1)});
  EXPECT_NEAR(smoothness(rows, 2, 1000000), 0.25 * 0.5, 1e-6);
  EXPECT_NEAR(smoothness(rows, 3, 4), 0.5 * (0.5 + 0.75 / 4), 1e-12);
  rows.clear();
  rows.append(data::SparseRow{0, {}, {}});
  EXPECT_EQ(smoothness(rows, 2, 10), 0.25) << "rows of zeros have an intercept";
}

TEST(Linear, what_cannot_be_is_refused_in_one_line) {
  const auto refusal = [](const LinearOptions& options) -> std::string {
    auto jobs = net::join_all(1);
    try {
      Linear learner(jobs[0]->transport(), separable(0, 1, 3), options);
      for (int epoch = 0; epoch < 3; ++epoch) learner.learn([](double) {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  LinearOptions options;
  options.l2 = 1000;
  EXPECT_EQ(refusal(options), "l2: weights would decay below zero in one step (take a smaller one, or a smaller step)");
  options = {};
  options.batch = 0;
  EXPECT_EQ(refusal(options), "batch: must be at least 1");
}

}  // namespace
}  // namespace shoal::learn
