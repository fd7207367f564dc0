#include "shoal/learn/metric.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/core/time.h"
#include "shoal/learn/linear.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/order.h"
#include "shoal/learn/rows.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kPairs = 0x6d70'0000;  // site of random numbers (core/seed.h)

const MetricOptions& checked(const MetricOptions& options, const LabelledRows& rows) {
  const auto refuse = [](const char* flag, const std::string& what) { throw Error(Code::invalid_argument, what, flag); };
  if (options.dimensions < 1 || options.dimensions > 1 << 16) refuse("dimensions", std::to_string(options.dimensions) + " is not between 1 and 65536");
  if (!(options.step.sigma > 0) || !std::isfinite(options.step.sigma)) refuse("step", "must be above zero");
  if (!(options.apart >= 0) || !std::isfinite(options.apart)) refuse("apart", "must not be below zero");
  if (options.batch < 1) refuse("batch", "must be at least 1");
  need_memory(2.0 * rows.columns * options.dimensions * sizeof(float), std::to_string(rows.columns) + " columns of " + std::to_string(options.dimensions) + " dimensions");
  return options;
}

// x - y. Calls each(column, value).
template <class Each>
void each_difference(const data::SparseRow& x, const data::SparseRow& y, const Each& each) {
  std::size_t i = 0, j = 0;
  while (i < x.columns.size() || j < y.columns.size()) {
    const bool left = j == y.columns.size() || (i < x.columns.size() && x.columns[i] <= y.columns[j]);
    const bool right = i == x.columns.size() || (j < y.columns.size() && y.columns[j] <= x.columns[i]);
    const std::uint32_t column = left ? x.columns[i] : y.columns[j];
    const float value = (left ? x.values[i++] : 0) - (right ? y.values[j++] : 0);
    if (value != 0) each(column, value);
  }
}

data::SparseRows differences(const data::SparseRows& rows) {
  data::SparseRows all;
  all.width = rows.width;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    each_difference(rows[i - 1], rows[i], [&](std::uint32_t column, float value) {
      all.columns.push_back(column);
      all.values.push_back(value);
    });
    all.offsets.push_back(all.columns.size());
    all.labels.push_back(0);
  }
  return all;
}

}  // namespace

Metric::Metric(net::Transport& transport, LabelledRows rows, const MetricOptions& options, const table::TablesOptions& tables)
    : options_(checked(options, rows)), rows_(std::move(rows)), of_class_(rows_.classes.size()), tables_(transport, tables), worker_(tables_.worker()),
      columns_(worker_.open<float>({.name = "columns", .width = options.dimensions, .consistency = options.consistency, .initial = {}})),
      sums_(worker_, "sums", 3), touched_(rows_.columns) {
  for (std::uint32_t own = 0; own < rows_.own.size(); ++own) of_class_[static_cast<std::size_t>(rows_.own[own].label)].push_back(own);
  begin_map();
}

// Random directions, so long that samples are about 1 apart. Each member writes a share of them.
void Metric::begin_map() {
  const data::SparseRows apart = differences(rows_.first);
  const double count = std::max<double>(1, static_cast<double>(apart.size())), norm = data::squared_norm(apart.values) / count;
  if (apart.size() > 0) unit_ = 8 * (1 + options_.apart) * smoothness(apart, 2, options_.batch);  // of the mean of |L d|^2 it is 2, not 1/4
  const double deviation = norm > 0 ? 1 / std::sqrt(options_.dimensions * norm) : 1;
  const KeyRange share{rows_.member, rows_.columns, rows_.members};
  std::vector<float> rows(share.size() * options_.dimensions);
  for (std::size_t i = 0; i < share.size(); ++i) {
    fill_normal(std::span(rows).subspan(i * options_.dimensions, options_.dimensions), deviation, options_.seed, share.begin + i * share.stride, 0);
  }
  assign_rows(columns_, share, rows);
  columns_.barrier();
}

// --- an epoch

Epoch Metric::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  const auto dealt = deal(rows_, options_.batch, options_.seed, epochs_ + 1);
  double loss = 0, pairs = 0;
  for (std::size_t clock = 0; clock < dealt.size(); ++clock) {
    draw_pairs(dealt[clock]);
    const double part = static_cast<double>(clock) / static_cast<double>(dealt.size());
    const std::size_t samples = std::min(options_.batch, rows_.count - clock * options_.batch);
    loss += step_by(options_.step.at(epochs_ + part) / unit_ / (2 * static_cast<double>(samples)));
    pairs += static_cast<double>(pairs_.size());
    if (!std::isfinite(loss)) {
      throw Error(Code::invalid_argument, "numbers grew without bound in epoch " + std::to_string(epochs_ + 1), "step", "take a smaller one");
    }
    progressed(static_cast<double>(clock + 1) / static_cast<double>(dealt.size()));
  }
  ++epochs_;
  const Instant meeting = steady_now();
  columns_.barrier();
  waited_ += seconds_between(meeting, steady_now());
  const double right = rightly_voted();
  const Instant summing = steady_now();
  const auto sums = sums_.sum({loss, pairs, right});
  const Instant end = steady_now();
  Epoch epoch{.number = epochs_, .figures = {{"training loss", sums[0] / std::max(1.0, sums[1])}}, .samples = rows_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end)};
  if (rows_.held_out > 0) epoch.figures.emplace_back("held-out neighbours", sums[2] / rows_.held_out);
  return epoch;
}

// Two a sample, where this member has partners for it.
void Metric::draw_pairs(std::span<const std::uint32_t> numbers) {
  constexpr std::uint32_t draws = 16;  // of a class that is nearly all rows a sample may find no other
  pairs_.clear();
  for (const std::uint32_t own : numbers) {
    const double label = rows_.own[own].label;
    const auto drawn = [&](std::uint32_t draw, std::size_t count) {
      const std::uint64_t number = (std::uint64_t{epochs_} << 32) + rows_.numbers[own];
      return static_cast<std::size_t>(uniform(options_.seed, number, draw, kPairs) * static_cast<double>(count));
    };
    const auto& alike = of_class_[static_cast<std::size_t>(label)];
    if (const std::uint32_t other = alike[drawn(0, alike.size())]; other != own) pairs_.push_back({own, other});
    for (std::uint32_t draw = 1; draw <= draws; ++draw) {
      const auto other = static_cast<std::uint32_t>(drawn(draw, rows_.own.size()));
      if (rows_.own[other].label == label) continue;
      pairs_.push_back({own, other});
      break;
    }
  }
}

// L -= step * 2 s (L d) d^T for each pair of difference d: s is 1 for one class; for two -w where they are nearer than 1, else 0. The sum of losses before it.
double Metric::step_by(double step) {
  std::vector<std::uint32_t> numbers;
  for (const Pair& pair : pairs_) numbers.insert(numbers.end(), {pair.one, pair.other});
  touched_.collect(rows_.own, numbers);
  const std::size_t dimensions = options_.dimensions;
  const auto keys = touched_.keys().first(touched_.ones());
  values_.resize(keys.size() * dimensions);
  const Instant asked = steady_now();
  columns_.read(keys, values_);
  waited_ += seconds_between(asked, steady_now());
  changes_.assign(values_.size(), 0);
  std::vector<float> point(dimensions);
  double loss = 0;
  for (const Pair& pair : pairs_) {
    const data::SparseRow x = rows_.own[pair.one], y = rows_.own[pair.other];
    std::fill(point.begin(), point.end(), 0.0f);
    each_difference(x, y, [&](std::uint32_t column, float value) {
      const float* row = &values_[touched_.place(column) * dimensions];
      for (std::size_t k = 0; k < dimensions; ++k) point[k] += value * row[k];
    });
    const double square = data::squared_norm(point);
    const bool alike = x.label == y.label;
    loss += alike ? square : options_.apart * std::max(0.0, 1 - square);
    if (!alike && square >= 1) continue;
    const auto factor = static_cast<float>(-2 * step * (alike ? 1 : -options_.apart));
    each_difference(x, y, [&](std::uint32_t column, float value) {
      float* row = &changes_[touched_.place(column) * dimensions];
      for (std::size_t k = 0; k < dimensions; ++k) row[k] += factor * value * point[k];
    });
  }
  if (!std::isfinite(loss)) return loss;
  if (!keys.empty()) columns_.add(keys, changes_);
  const Instant added = steady_now();
  columns_.tick();
  waited_ += seconds_between(added, steady_now());
  return loss;
}

double Metric::rightly_voted() {
  if (rows_.held_out == 0) return 0;
  const Instant begin = steady_now();
  MetricMap map{rows_.columns, options_.dimensions, std::vector<float>(std::size_t{rows_.columns} * options_.dimensions)};
  read_rows(columns_, {0, rows_.columns}, map.values);
  waited_ += seconds_between(begin, steady_now());
  Neighbourhood known;
  for (std::size_t i = 0; i < rows_.first.size(); ++i) known.add(map(rows_.first[i]), rows_.first[i].label);
  double right = 0;
  for (std::size_t i = 0; i < rows_.own_held_out.size(); ++i) {
    right += known.vote(map(rows_.own_held_out[i]), kNeighbours) == rows_.own_held_out[i].label ? 1 : 0;
  }
  return right;
}

// --- models

Tensors Metric::model() {
  columns_.barrier();
  Tensors model;
  if (rows_.member == 0) model.emplace("map", tensor_from(columns_, {0, rows_.columns}));
  columns_.barrier();  // nobody changes what rank 0 has not read
  return model;
}

unsigned Metric::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({rows_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0})[0]);
  if (epochs_ == 0) return 0;
  if (rows_.member == 0) assign_rows(columns_, KeyRange{0, rows_.columns}, tensor_of(model, "map", {rows_.columns, options_.dimensions}).values);
  columns_.barrier();
  return epochs_;
}

}  // namespace shoal::learn
