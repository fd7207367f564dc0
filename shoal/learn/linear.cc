#include "shoal/learn/linear.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/memory.h"

namespace shoal::learn {
namespace {

constexpr double kSmallestScale = 1e-4;  // V has the digits that W = c V needs

const LinearOptions& checked(const LinearOptions& options, const LabelledRows& rows) {
  const auto refuse = [](const char* flag, const char* what) { throw Error(Code::invalid_argument, what, flag); };
  if (!(options.step.sigma > 0) || !std::isfinite(options.step.sigma)) refuse("step", "must be above zero");
  if (!(options.l2 >= 0) || !std::isfinite(options.l2)) refuse("l2", "must not be below zero");
  if (options.batch < 1) refuse("batch", "must be at least 1");
  need_memory(rows.columns * (2.0 * sizeof(double) + sizeof(std::uint32_t)), std::to_string(rows.columns) + " columns");
  return options;
}

// The largest second derivative of a row's loss by its scores.
double curvature(std::size_t classes) { return classes == 2 ? 0.25 : 0.5; }

}  // namespace

void softmax(std::span<const double> scores, std::span<double> probabilities) {
  if (scores.size() == 1) {
    const double less = std::exp(-std::abs(scores[0])), likelier = 1 / (1 + less);  // no overflow
    probabilities[scores[0] < 0 ? 0 : 1] = likelier;
    probabilities[scores[0] < 0 ? 1 : 0] = less * likelier;
    return;
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) sum += probabilities[j] = std::exp(scores[j] - most);
  for (double& probability : probabilities) probability /= sum;
}

// Lambda by power iteration, from the vector of ones.
double smoothness(const data::SparseRows& rows, std::size_t classes, std::size_t batch) {
  constexpr int iterations = 30;
  std::vector<double> at(rows.width, 1.0), next(rows.width);
  double norms = 0, lambda = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) norms += data::squared_norm(rows[i].values);
  if (norms == 0) return curvature(classes);
  const auto count = static_cast<double>(rows.size());
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const double length = std::sqrt(std::inner_product(at.begin(), at.end(), at.begin(), 0.0));
    if (length == 0) break;  // the vector of ones is orthogonal to all rows: they have no common direction
    for (double& value : at) value /= length;
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const data::SparseRow row = rows[i];
      double product = 0;
      for (std::size_t k = 0; k < row.columns.size(); ++k) product += at[row.columns[k]] * row.values[k];
      for (std::size_t k = 0; k < row.columns.size(); ++k) next[row.columns[k]] += product * row.values[k] / count;
    }
    lambda = std::inner_product(at.begin(), at.end(), next.begin(), 0.0);
    std::swap(at, next);
  }
  const double mean = norms / count, share = 1 / static_cast<double>(batch);
  return curvature(classes) * (lambda + mean * (1 - share) * share);
}

Linear::Linear(net::Transport& transport, LabelledRows rows, const LinearOptions& options, const table::TablesOptions& tables)
    : options_(checked(options, rows)),
      rows_(std::move(rows)),
      classes_(rows_.classes.size()),
      width_(width_for(classes_)),
      smoothness_(smoothness(rows_.first, classes_, options_.batch)),
      tables_(transport, tables),
      worker_(tables_.worker()),
      columns_(share<float>(transport, worker_,
                            {"columns", rows_.columns + table::Key{1}, width_, options.consistency, options.encoding},
                            options.sharing, [&] { return load_of(rows_, deal(rows_, options.batch, options.seed, 1)); }, tables.patience)),
      sums_(worker_, "sums", 3),
      touched_(rows_.columns) {}

// --- an epoch

Epoch Linear::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  const auto dealt = deal(rows_, options_.batch, options_.seed, epochs_ + 1);
  const std::size_t clocks = dealt.size();
  double loss = 0;
  for (std::size_t clock = 0; clock < clocks; ++clock) {
    const double part = static_cast<double>(clock) / static_cast<double>(clocks);
    const double step = options_.step.at(epochs_ + part) / smoothness_;
    if (step * options_.l2 >= 1)
      throw Error(Code::invalid_argument, "weights would decay below zero in one step", "l2",
                  "take a smaller one, or a smaller step");
    loss += step_by(dealt[clock], step, std::min(options_.batch, rows_.count - clock * options_.batch));
    if (!std::isfinite(loss)) {
      throw Error(Code::invalid_argument, "numbers grew without bound in epoch " + std::to_string(epochs_ + 1), "step", "take a smaller one");
    }
    if (scale_ < kSmallestScale) fold();
    progressed(static_cast<double>(clock + 1) / static_cast<double>(clocks));
  }
  ++epochs_;
  fold();
  columns_->end_epoch([&] { return load_of(rows_, dealt); });
  const Sums held_out = sums_held_out();
  const Instant summing = steady_now();
  const auto sums = sums_.sum({loss, held_out.loss, held_out.correct});
  const Instant end = steady_now();

  Epoch epoch{.number = epochs_, .figures = {{"training log loss", sums[0] / rows_.count}}, .samples = rows_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end)};
  if (rows_.held_out > 0) {
    epoch.figures.emplace_back("held-out log loss", sums[1] / rows_.held_out);
    epoch.figures.emplace_back("held-out accuracy", sums[2] / rows_.held_out);
  }
  return epoch;
}

// The row's classes' probabilities by the columns that were read last; its loss, and whether its class is the likeliest.
Linear::Sums Linear::look_at(const data::SparseRow& row, std::vector<double>& probabilities) {
  std::vector<double> scores(width_);
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    const float* values = &values_[touched_.place(row.columns[k]) * width_];
    for (std::size_t j = 0; j < width_; ++j) scores[j] += double{row.values[k]} * values[j];
  }
  const float* intercept = &values_[values_.size() - width_];
  for (std::size_t j = 0; j < width_; ++j) scores[j] = scale_ * scores[j] + intercept[j];
  probabilities.resize(classes_);
  softmax(scores, probabilities);
  const auto label = static_cast<std::size_t>(row.label);
  const auto likeliest = static_cast<std::size_t>(std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
  constexpr double least = 1e-300;  // a probability of 0 would make one row's loss endless
  return {std::isfinite(probabilities[label]) ? -std::log(std::max(probabilities[label], least)) : probabilities[label],
          likeliest == label ? 1.0 : 0.0};
}

// c' = c (1 - step l2);  V -= step / c' * 1/batch sum (softmax(W x + b) - e_y) x^T. The sum of losses before it.
double Linear::step_by(std::span<const std::uint32_t> numbers, double step, std::size_t batch) {
  waited_ += read_touched(*columns_, rows_.own, numbers, touched_, values_);
  factor::Outer<float> changes(width_, touched_.keys());
  const double scaled = step / static_cast<double>(batch) / (scale_ * (1 - step * options_.l2));
  // The intercept is a column of ones: sparse data would bear longer steps than it does. It is not scaled.
  const auto ones = static_cast<float>(smoothness_ / curvature(classes_) * scale_ * (1 - step * options_.l2));
  std::vector<double> probabilities;
  double loss = 0;
  for (const std::uint32_t number : numbers) {
    const data::SparseRow row = rows_.own[number];
    loss += look_at(row, probabilities).loss;
    probabilities[static_cast<std::size_t>(row.label)] -= 1;
    const double* errors = probabilities.data() + (classes_ - width_);  // of two classes, the second's
    const auto vector = changes.new_vector();
    for (std::size_t j = 0; j < width_; ++j) vector[j] = static_cast<float>(-scaled * errors[j]);
    for (std::size_t k = 0; k < row.columns.size(); ++k) changes.add(touched_.place(row.columns[k]), row.values[k]);
    changes.add(touched_.ones(), ones);
  }
  scale_ *= 1 - step * options_.l2;
  if (!std::isfinite(loss)) return loss;
  changes.seal();
  columns_->add(std::move(changes));
  const Instant added = steady_now();
  columns_->tick();
  waited_ += seconds_between(added, steady_now());
  return loss;
}

// V takes c over, at a barrier.
void Linear::fold() {
  const Instant begin = steady_now();
  columns_->barrier();
  if (scale_ != 1) columns_->scale(scale_, rows_.columns);
  scale_ = 1;
  waited_ += seconds_between(begin, steady_now());
}

Linear::Sums Linear::sums_held_out() {
  std::vector<std::uint32_t> all(rows_.own_held_out.size());
  std::iota(all.begin(), all.end(), 0u);
  waited_ += read_touched(*columns_, rows_.own_held_out, all, touched_, values_);
  Sums sums;
  std::vector<double> probabilities;
  for (const std::uint32_t number : all) {
    const Sums one = look_at(rows_.own_held_out[number], probabilities);
    sums.loss += one.loss;
    sums.correct += one.correct;
  }
  return sums;
}

// --- models

Tensors Linear::model() {
  columns_->barrier();
  Tensors model;
  if (rows_.member == 0) {
    model.emplace("weights", tensor_from(*columns_, {0, rows_.columns}));
    model.emplace("intercept", Tensor{{width_}, tensor_from(*columns_, {rows_.columns, rows_.columns + table::Key{1}}).values});
  }
  columns_->barrier();  // nobody changes what rank 0 has not read
  return model;
}

void Linear::begin_with(const Tensors& first) {
  if (rows_.member == 0) {
    set_rows(*columns_, {0, rows_.columns}, tensor_of(first, "weights", {rows_.columns, width_}));
    set_rows(*columns_, {rows_.columns, rows_.columns + table::Key{1}}, tensor_of(first, "intercept", {width_}));
  }
  columns_->barrier();
}

unsigned Linear::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({rows_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0})[0]);
  if (epochs_ > 0) begin_with(model);
  return epochs_;
}

}  // namespace shoal::learn
