#include "shoal/learn/metric.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/neighbours.h"
#include "shoal/learn/principal.h"
#include "shoal/learn/rows.h"

namespace shoal::learn {
namespace {

constexpr double kApartAtFirst = 5;      // mean squared distance of a sample to its partner of another class, in margins
constexpr std::size_t kMeasured = 1000;  // own rows whose partners say that

const MetricOptions& checked(const MetricOptions& options, const LabelledRows& rows) {
  const auto refuse = [](const char* flag, const std::string& what) { throw Error(Code::invalid_argument, what, flag); };
  const std::string dimensions = std::to_string(options.dimensions);
  if (options.dimensions < 1 || options.dimensions > 1 << 16) refuse("dimensions", dimensions + " is not between 1 and 65536");
  if (!(options.step.sigma > 0) || !std::isfinite(options.step.sigma)) refuse("step", "must be above zero");
  if (!(options.apart >= 0) || !std::isfinite(options.apart)) refuse("apart", "must not be below zero");
  if (options.batch < 1) refuse("batch", "must be at least 1");
  const double rows_of_map = 2.0 * rows.columns + static_cast<double>(rows.own.size());
  need_memory(rows_of_map * options.dimensions * sizeof(float), std::to_string(rows.columns) + " columns of " + dimensions + " dimensions");
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

// Of each row to the nearest one of another class, as they are; where all are of one, to the nearest.
data::SparseRows differences(const data::SparseRows& rows) {
  const bool several = std::adjacent_find(rows.labels.begin(), rows.labels.end(), std::not_equal_to<>()) != rows.labels.end();
  const auto to_all = distances(rows, rows);
  std::vector<float> squared(rows.size());
  data::SparseRows all;
  all.width = rows.width;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    to_all(i, squared);
    std::size_t nearest = i;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const bool counts = several ? rows.labels[j] != rows.labels[i] : j != i;
      if (counts && (nearest == i || squared[j] < squared[nearest])) nearest = j;
    }
    each_difference(rows[i], rows[nearest], [&](std::uint32_t column, float value) {
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
    : options_(checked(options, rows)), rows_(std::move(rows)), partners_(rows_.own.labels, rows_.numbers, options.seed),
      tables_(transport, tables), worker_(tables_.worker()),
      columns_(worker_.open<float>({.name = "columns", .width = options.dimensions, .consistency = options.consistency, .initial = {}})),
      sums_(worker_, "sums", 3), touched_(rows_.columns) {
  begin_map();
}

// Where classes differ, in units of the margin. All members find the same; each writes a share.
void Metric::begin_map() {
  const std::size_t dimensions = options_.dimensions;
  MetricMap map{rows_.columns, options_.dimensions, std::vector<float>(rows_.columns * dimensions)};
  if (options_.dimensions < rows_.columns) {
    map.values = principal_directions(differences(rows_.first), options_.dimensions, options_.seed);
  } else {
    for (std::size_t column = 0; column < rows_.columns; ++column) map.values[column * dimensions + column] = 1;
  }
  points_ = map(rows_.own.all());
  std::vector<std::uint32_t> some(std::min(rows_.own.size(), kMeasured));
  std::iota(some.begin(), some.end(), 0U);
  find_partners(some);
  double apart = 0, squares = 0;
  for (const auto& [sample, alike, other] : triples_) {
    const auto point = [&](std::uint32_t row) { return std::span(points_).subspan(row * dimensions, dimensions); };
    apart += squared_distance(point(sample), point(other));
    for (const std::uint32_t partner : {alike, other}) {
      each_difference(rows_.own[sample], rows_.own[partner], [&](std::uint32_t, float value) { squares += double{value} * value; });
    }
  }
  const auto sums = sums_.sum({apart, squares, static_cast<double>(triples_.size())});
  if (sums[0] > 0) {
    const auto length = static_cast<float>(std::sqrt(kApartAtFirst * sums[2] / sums[0]));
    for (float& value : map.values) value *= length;
    unit_ = (1 + options_.apart) * sums[1] / sums[2];
  }
  const KeyRange share{rows_.member, rows_.columns, rows_.members};
  std::vector<float> rows;
  for (const table::Key column : keys_in(share)) {
    const auto from = map.values.begin() + static_cast<std::ptrdiff_t>(column * dimensions);
    rows.insert(rows.end(), from, from + static_cast<std::ptrdiff_t>(dimensions));
  }
  assign_rows(columns_, share, rows);
  columns_.barrier();
}

// --- an epoch

Epoch Metric::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  const auto dealt = deal(rows_, options_.batch, options_.seed, epochs_ + 1);
  points_ = map()(rows_.own.all());
  double loss = 0, triples = 0;
  for (std::size_t clock = 0; clock < dealt.size(); ++clock) {
    find_partners(dealt[clock]);
    const double part = static_cast<double>(clock) / static_cast<double>(dealt.size());
    const std::size_t samples = std::min(options_.batch, rows_.count - clock * options_.batch);
    loss += step_by(options_.step.at(epochs_ + part) / unit_ / static_cast<double>(samples));
    triples += static_cast<double>(triples_.size());
    if (!std::isfinite(loss)) {
      throw Error(Code::invalid_argument, "numbers grew without bound in epoch " + std::to_string(epochs_ + 1), "step", "take a smaller one");
    }
    progressed(static_cast<double>(clock + 1) / static_cast<double>(dealt.size()));
  }
  ++epochs_;
  const Instant meeting = steady_now();
  columns_.barrier();
  waited_ += seconds_between(meeting, steady_now());
  const double right = rows_.held_out > 0 ? rightly_voted(map()) : 0;
  const Instant summing = steady_now();
  const auto sums = sums_.sum({loss, triples, right});
  const Instant end = steady_now();
  Epoch epoch{.number = epochs_, .figures = {{"training loss", sums[0] / std::max(1.0, sums[1])}}, .samples = rows_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end)};
  if (rows_.held_out > 0) epoch.figures.emplace_back("held-out neighbours", sums[2] / rows_.held_out);
  return epoch;
}

void Metric::find_partners(std::span<const std::uint32_t> samples) {
  triples_.clear();
  for (const std::uint32_t sample : samples) {
    if (const auto found = partners_.of(sample, epochs_, points_, options_.dimensions)) triples_.push_back({sample, found->alike, found->other});
  }
}

// L -= step * 2 ((1 + w') (L d) d^T - w' (L e) e^T) for each sample, d its difference from its partner of one class, e from that of another, w' = w
// where e is not longer than d by the margin, else 0. The sum of losses before it.
double Metric::step_by(double step) {
  std::vector<std::uint32_t> numbers;
  for (const Triple& triple : triples_) numbers.insert(numbers.end(), {triple.sample, triple.alike, triple.other});
  touched_.collect(rows_.own, numbers);
  const std::size_t dimensions = options_.dimensions;
  const auto keys = touched_.keys().first(touched_.ones());
  values_.resize(keys.size() * dimensions);
  const Instant asked = steady_now();
  columns_.read(keys, values_);
  waited_ += seconds_between(asked, steady_now());
  changes_.assign(values_.size(), 0);
  std::vector<float> near(dimensions), far(dimensions);
  // L (x - y) to `point`; its squared length.
  const auto mapped = [&](const data::SparseRow& x, const data::SparseRow& y, std::vector<float>& point) {
    std::fill(point.begin(), point.end(), 0.0f);
    each_difference(x, y, [&](std::uint32_t column, float value) {
      const float* row = &values_[touched_.place(column) * dimensions];
      for (std::size_t k = 0; k < dimensions; ++k) point[k] += value * row[k];
    });
    return data::squared_norm(point);
  };
  const auto change = [&](const data::SparseRow& x, const data::SparseRow& y, const std::vector<float>& point, double by) {
    each_difference(x, y, [&](std::uint32_t column, float value) {
      float* row = &changes_[touched_.place(column) * dimensions];
      for (std::size_t k = 0; k < dimensions; ++k) row[k] += static_cast<float>(by) * value * point[k];
    });
  };
  double loss = 0;
  for (const Triple& triple : triples_) {
    const data::SparseRow x = rows_.own[triple.sample], y = rows_.own[triple.alike], z = rows_.own[triple.other];
    const double pulls = mapped(x, y, near), excess = 1 + pulls - mapped(x, z, far);
    const double pushes = excess > 0 ? options_.apart : 0;
    loss += pulls + pushes * excess;
    change(x, y, near, -2 * step * (1 + pushes));
    if (pushes > 0) change(x, z, far, 2 * step * pushes);
  }
  if (!std::isfinite(loss)) return loss;
  if (!keys.empty()) columns_.add(keys, changes_);
  const Instant added = steady_now();
  columns_.tick();
  waited_ += seconds_between(added, steady_now());
  return loss;
}

MetricMap Metric::map() {
  const Instant begin = steady_now();
  MetricMap map{rows_.columns, options_.dimensions, std::vector<float>(std::size_t{rows_.columns} * options_.dimensions)};
  read_rows(columns_, {0, rows_.columns}, map.values);
  waited_ += seconds_between(begin, steady_now());
  return map;
}

double Metric::rightly_voted(const MetricMap& map) {
  const auto known = map(rows_.first.all()), samples = map(rows_.own_held_out.all());
  const auto to_known = distances(samples, known, options_.dimensions);
  return static_cast<double>(learn::rightly_voted(to_known, rows_.own_held_out.labels, rows_.first.labels, kNeighbours));
}

// --- models

Tensors Metric::model() {
  columns_.barrier();
  Tensors model;
  if (rows_.member == 0) model.emplace("map", tensor_from(columns_, {0, rows_.columns}));
  columns_.barrier();  // nobody changes what rank 0 has not read
  return model;
}

void Metric::begin_with(const Tensors& first) {
  if (rows_.member == 0) assign_rows(columns_, KeyRange{0, rows_.columns}, tensor_of(first, "map", {rows_.columns, options_.dimensions}).values);
  columns_.barrier();
}

unsigned Metric::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({rows_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0})[0]);
  if (epochs_ > 0) begin_with(model);
  return epochs_;
}

}  // namespace shoal::learn
