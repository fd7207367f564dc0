// Goal: a step is down the gradient of the pairs' loss, classes that a few columns tell apart become near themselves, and a run that goes on has the bits of one that was
// not interrupted.
#include "shoal/learn/metric.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/learn/members.h"
#include "tests/learn/separable.h"

namespace shoal::learn {
namespace {

Begin metric(const MetricOptions& options, std::uint32_t count = 300) {
  return [=](net::Transport& transport) { return std::make_unique<Metric>(transport, separable(transport.rank(), transport.size(), 3, count), options); };
}

// The pairs of an epoch are a function of seed and epoch alone, so the loss of the same epoch at other maps is that of the same pairs. Oracle: central differences
// of the figure; the step's size is the one factor that all numbers share.
TEST(Metric, a_step_is_down_the_gradient) {
  MetricOptions options;
  options.dimensions = 2;
  options.batch = 1000;
  options.apart = 0.7;
  options.step = {1, false};
  Tensor map{{12, 2}, std::vector<float>(24)};
  for (std::size_t i = 0; i < map.values.size(); ++i) map.values[i] = static_cast<float>(uniform(9, i, 0, 0)) - 0.5f;
  const auto learnt_from = [&](const Tensor& from) { return learnt_by(1, 2, metric(options, 60), 1, {{"map", from}}); };
  const Learnt learnt = learnt_from(map);
  double along = 0, gradients = 0, steps = 0;
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    constexpr float nudge = 1.0f / 1024;
    Tensor above = map, below = map;
    above.values[i] += nudge;
    below.values[i] -= nudge;
    const double gradient = (learnt_from(above).figure("training loss") - learnt_from(below).figure("training loss")) / (2 * nudge);
    const double step = double{map.values[i]} - learnt.model.at("map").values[i];
    along += gradient * step;
    gradients += gradient * gradient;
    steps += step * step;
  }
  EXPECT_GT(gradients, 1e-4);
  EXPECT_GT(along / std::sqrt(gradients * steps), 0.9999);
}

TEST(Metric, samples_of_a_class_become_neighbours) {
  const LabelledRows rows = separable(0, 1, 3, 300);
  Neighbourhood as_they_are;
  for (std::size_t i = 0; i < rows.own.size(); ++i) {
    std::vector<float> point(12);
    for (std::size_t k = 0; k < rows.own[i].columns.size(); ++k) point[rows.own[i].columns[k]] = rows.own[i].values[k];
    as_they_are.add(point, rows.own[i].label);
  }
  for (const table::Consistency& consistency : {table::Consistency(table::Bsp{}), table::Consistency(table::Essp{2}), table::Consistency(table::Async{})}) {
    for (const net::Rank members : {1u, 3u}) {
      MetricOptions options;
      options.dimensions = 3;
      options.batch = 30;
      options.consistency = consistency;
      const Learnt learnt = learnt_by(members, 30, metric(options));
      const MetricMap map{12, 3, learnt.model.at("map").values};
      Neighbourhood mapped;
      for (std::size_t i = 0; i < rows.own.size(); ++i) mapped.add(map(rows.own[i]), rows.own[i].label);
      EXPECT_GT(mapped.leave_one_out(5), as_they_are.leave_one_out(5));
      EXPECT_GT(mapped.pair_auc(), as_they_are.pair_auc() + 0.1);
      EXPECT_GT(learnt.figure("held-out neighbours"), 0.8);
    }
  }
}

TEST(Metric, two_runs_have_the_same_bits_and_so_has_one_that_goes_on) {
  MetricOptions options;
  options.dimensions = 4;
  options.batch = 30;
  for (const net::Rank members : {1u, 3u}) {
    const Learnt whole = learnt_by(members, 5, metric(options)), half = learnt_by(members, 2, metric(options));
    expect_same_bits(learnt_by(members, 5, metric(options)).model, whole.model);
    expect_same_bits(learnt_by(members, 5, metric(options), 2, half.model).model, whole.model);
  }
}

TEST(Metric, votes_and_pairs_are_those_counted_by_hand) {
  Neighbourhood points;
  points.add({0}, 1);
  points.add({1}, 1);
  points.add({3}, 2);
  points.add({4}, 2);
  EXPECT_EQ(points.vote(std::vector<float>{1.9f}, 1), 1);
  EXPECT_EQ(points.vote(std::vector<float>{2.1f}, 3), 2);
  EXPECT_EQ(points.vote(std::vector<float>{1.9f}, 4), 1) << "two and two: the nearest decides";
  EXPECT_EQ(points.leave_one_out(1), 1);
  EXPECT_EQ(points.pair_auc(), 1);
  points.add({1}, 2);  // 4 pairs of one class: 1, 1, 2, 3; 6 of two: 1, 0, 3, 2, 4, 3
  EXPECT_DOUBLE_EQ(points.pair_auc(), (2 * (0.5 + 4) + (0.5 + 3) + (0.5 * 2 + 1)) / 24);
}

TEST(Metric, what_cannot_be_is_refused_in_one_line) {
  auto jobs = net::join_all(1);
  const auto refusal = [&](const MetricOptions& options) -> std::string {
    try {
      metric(options)(jobs[0]->transport());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({.dimensions = 0}), "dimensions: 0 is not between 1 and 65536");
  EXPECT_EQ(refusal({.apart = -1}), "apart: must not be below zero");
  EXPECT_EQ(refusal({.batch = 0}), "batch: must be at least 1");
}

}  // namespace
}  // namespace shoal::learn
