// Goal: a step is down the gradient of the loss, classes that a few columns tell apart become near themselves, and a run that goes on has the bits of
// one that was not interrupted.
#include "shoal/learn/metric.h"

#include <gmock/gmock.h>

#include <cmath>

#include "shoal/learn/neighbours.h"
#include "tests/learn/members.h"
#include "tests/learn/separable.h"

namespace shoal::learn {
namespace {

Begin metric(const MetricOptions& options, std::uint32_t count = 300) {
  return [=](net::Transport& transport) { return std::make_unique<Metric>(transport, separable(transport.rank(), transport.size(), 3, count), options); };
}

// With so few rows each sees all others, so the loss of an epoch is a function of the map that it begins with, and as partners are the nearest a
// continuous one. Oracle: central differences of the figure; the step's size is the one factor that all numbers share.
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
  data::SparseRows all;
  all.width = 12;
  all.append(rows.own.all());
  const auto as_they_are = distances(all, all);
  for (const table::Consistency& consistency : {table::Consistency(table::Bsp{}), table::Consistency(table::Essp{2}), table::Consistency(table::Async{})}) {
    for (const net::Rank members : {1u, 3u}) {
      MetricOptions options;
      options.dimensions = 3;
      options.batch = 30;
      options.consistency = consistency;
      const Learnt learnt = learnt_by(members, 30, metric(options));
      const MetricMap map{12, 3, learnt.model.at("map").values};
      const auto points = map(all.all());
      const auto mapped = distances(points, points, 3);
      EXPECT_GT(rightly_voted(mapped, all.labels, 3), rightly_voted(as_they_are, all.labels, 3));
      EXPECT_GT(pair_auc(mapped, all.labels), pair_auc(as_they_are, all.labels) + 0.1);
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

// A member without two classes has nobody to compare with: it still takes part.
TEST(Metric, a_member_with_one_class_holds_nobody_up) {
  const Learnt learnt = learnt_by(2, 3, [](net::Transport& transport) {
    data::SparseRows all;
    for (int i = 0; i < 40; ++i) {  // rows go round the members: the second has class 1 alone
      const std::vector<std::uint32_t> columns{0, 1};
      const std::vector<float> values{static_cast<float>(i % 2), static_cast<float>(i * 7 % 11)};
      all.append(data::SparseRow{i % 4 == 0 ? 0.0 : 1.0, columns, values});
    }
    all.width = 2;
    return std::make_unique<Metric>(transport, deal_rows(all, transport.rank(), transport.size()), MetricOptions{.dimensions = 2, .batch = 10});
  });
  EXPECT_TRUE(std::isfinite(learnt.figure("training loss")));
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
