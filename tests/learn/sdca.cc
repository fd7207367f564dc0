// Goal: the gap bounds how far the optimum is, which full gradients in one loop have found; the dual never falls whatever the number of members; a run that
// goes on has the bits of one that was not interrupted.
#include "shoal/learn/sdca.h"

#include <gmock/gmock.h>

#include "shoal/learn/linear.h"
#include "tests/learn/members.h"
#include "tests/learn/separable.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kRows = 200;

Begin sdca(const SdcaOptions& options, std::uint32_t classes) {
  return [=](net::Transport& transport) { return std::make_unique<Sdca>(transport, separable(transport.rank(), transport.size(), classes, kRows), options); };
}

double figure(const Epoch& epoch, std::size_t at) { return epoch.figures[at].second; }

// P at its smallest: gradient descent over all rows in doubles, one thread, until nothing changes.
double optimum(std::uint32_t classes, double l2) {
  const LabelledRows rows = separable(0, 1, classes, kRows);
  const std::size_t width = width_for(classes), columns = rows.columns + 1;
  std::vector<double> w(columns * width), gradient(w.size()), scores(width), likely(classes);
  double loss = 0;
  for (int step = 0; step < 20'000; ++step) {
    for (std::size_t i = 0; i < w.size(); ++i) gradient[i] = l2 * w[i];
    loss = 0;
    for (std::size_t i = 0; i < rows.own.size(); ++i) {
      const data::SparseRow row = rows.own[i];
      std::copy(w.end() - static_cast<std::ptrdiff_t>(width), w.end(), scores.begin());
      for (std::size_t k = 0; k < row.columns.size(); ++k) {
        for (std::size_t j = 0; j < width; ++j) scores[j] += row.values[k] * w[row.columns[k] * width + j];
      }
      softmax(scores, likely);
      const auto label = static_cast<std::size_t>(row.label);
      loss -= std::log(likely[label]) / rows.count;
      likely[label] -= 1;
      for (std::size_t j = 0; j < width; ++j) {
        const double error = likely[classes - width + j] / rows.count;
        for (std::size_t k = 0; k < row.columns.size(); ++k) gradient[row.columns[k] * width + j] += error * row.values[k];
        gradient[rows.columns * width + j] += error;
      }
    }
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.3 * gradient[i];
  }
  for (const double value : w) loss += l2 / 2 * value * value;
  return loss;
}

TEST(Sdca, the_gap_bounds_the_distance_to_the_optimum_and_the_dual_never_falls) {
  for (const std::uint32_t classes : {2u, 5u}) {
    constexpr double l2 = 0.01;
    const double best = optimum(classes, l2);
    for (const net::Rank members : {1u, 2u, 5u}) {
      SCOPED_TRACE(std::to_string(classes) + " classes, " + std::to_string(members) + " members");
      const Learnt learnt = learnt_by(members, 60, sdca({.l2 = l2, .gap = 0, .batch = 40}, classes));
      double dual = 0;  // of p = e_y
      for (const Epoch& epoch : learnt.epochs) {
        const double objective = figure(epoch, 0), gap = figure(epoch, 1);
        EXPECT_GE(gap, 0);
        EXPECT_LE(objective - best, gap + 1e-9);
        EXPECT_GE(objective - best, -1e-9);
        EXPECT_GE(objective - gap, dual - 1e-7) << epoch.number;
        dual = objective - gap;
      }
      EXPECT_LT(figure(learnt.epochs.back(), 1), 1e-4);
    }
  }
}

// Oracle: the objective of the kept weights by a loop.
TEST(Sdca, the_objective_is_that_of_the_kept_weights) {
  for (const std::uint32_t classes : {2u, 4u}) {
    const Learnt learnt = learnt_by(3, 4, sdca({.l2 = 0.02, .batch = 30}, classes));
    const auto &weights = learnt.model.at("weights").values, &intercept = learnt.model.at("intercept").values;
    const std::vector<double> w(weights.begin(), weights.end()), b(intercept.begin(), intercept.end());
    double objective = mean_loss(separable(0, 1, classes, kRows).own, w, b, classes);
    for (const auto* part : {&w, &b}) {
      for (const double value : *part) objective += 0.01 * value * value;
    }
    EXPECT_NEAR(learnt.figure("objective"), objective, 1e-6);
  }
}

TEST(Sdca, it_says_when_the_gap_is_small_enough) {
  const Learnt learnt = learnt_by(2, 30, sdca({.l2 = 0.05, .gap = 1e-3, .batch = 50}, 3));
  for (const Epoch& epoch : learnt.epochs) EXPECT_EQ(epoch.converged, figure(epoch, 1) <= 1e-3);
  EXPECT_FALSE(learnt.epochs.front().converged);
  EXPECT_TRUE(learnt.epochs.back().converged);
}

TEST(Sdca, two_runs_have_the_same_bits_and_so_has_one_that_goes_on) {
  for (const net::Rank members : {1u, 3u}) {
    for (const std::uint32_t classes : {2u, 3u}) {
      const auto begin = sdca({.l2 = 1e-3, .batch = 30}, classes);
      const Learnt whole = learnt_by(members, 5, begin), half = learnt_by(members, 2, begin), rest = learnt_by(members, 5, begin, 2, half.model);
      expect_same_bits(whole.model, learnt_by(members, 5, begin).model);
      expect_same_bits(rest.model, whole.model);
      EXPECT_EQ(rest.figure("objective"), whole.figure("objective"));
    }
  }
}

TEST(Sdca, what_cannot_be_is_refused_in_one_line) {
  auto jobs = net::join_all(1);
  const auto refusal = [&](const SdcaOptions& options) -> std::string {
    try {
      Sdca learner(jobs[0]->transport(), separable(0, 1, 3), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({.l2 = 0}), "l2: must be above zero, for there is no dual without it");
  EXPECT_EQ(refusal({.gap = -1}), "gap: must not be below zero");
  EXPECT_EQ(refusal({.batch = 0}), "batch: must be at least 1");
}

}  // namespace
}  // namespace shoal::learn
