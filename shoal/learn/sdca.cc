#include "shoal/learn/sdca.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/linear.h"
#include "shoal/learn/memory.h"

namespace shoal::learn {
namespace {


const SdcaOptions& checked(const SdcaOptions& options, const LabelledRows& rows) {
  const auto refuse = [](const char* flag, const char* what) { throw Error(Code::invalid_argument, what, flag); };
  if (!(options.l2 > 0) || !std::isfinite(options.l2)) refuse("l2", "must be above zero, for there is no dual without it");
  if (!(options.gap >= 0) || !std::isfinite(options.gap)) refuse("gap", "must not be below zero");
  if (options.batch < 1) refuse("batch", "must be at least 1");
  const auto width = static_cast<double>(width_for(rows.classes.size()));
  need_memory(rows.columns * (width * sizeof(double) / rows.members + sizeof(std::uint32_t)) +
                  width * sizeof(float) * static_cast<double>(rows.own.size()),
              std::to_string(rows.columns) + " columns and " + std::to_string(rows.count) + " rows of " +
                  std::to_string(rows.classes.size()) + " classes");
  return options;
}

// KL(p || softmax(scores)). Zero where p is that to rounding.
double divergence(std::span<const double> p, std::span<const double> scores, double log_sum) {
  double sum = log_sum;
  for (std::size_t j = 0; j < p.size(); ++j) sum += p[j] > 0 ? p[j] * (std::log(p[j]) - scores[j]) : 0;
  return std::max(sum, 0.0);
}

}  // namespace

Sdca::Sdca(net::Transport& transport, LabelledRows rows, const SdcaOptions& options, const table::TablesOptions& tables)
    : options_(checked(options, rows)),
      rows_(std::move(rows)),
      classes_(rows_.classes.size()),
      width_(width_for(classes_)),
      mass_(options.l2 * rows_.count),
      tables_(transport, tables),
      worker_(tables_.worker()),
      columns_(share<double>(transport, worker_, {"columns", rows_.columns + table::Key{1}, width_, table::Bsp{}},
                             options.sharing, [&] { return load_of(rows_, deal(rows_, options.batch, options.seed, 1)); }, tables.patience)),
      all_duals_(worker_.open<float>({.name = "dual", .width = width_, .consistency = table::Bsp{}, .initial = {}})),
      sums_(worker_, "sums", 5),
      dual_(rows_.own.size() * width_),
      touched_(rows_.columns),
      scores_(classes_),
      likely_(classes_),
      p_(classes_),
      change_(classes_) {}

// --- an epoch

Epoch Sdca::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  const auto dealt = deal(rows_, options_.batch, options_.seed, epochs_ + 1);
  for (std::size_t clock = 0; clock < dealt.size(); ++clock) {
    step_by(dealt[clock]);
    progressed(static_cast<double>(clock + 1) / static_cast<double>(dealt.size()));
  }
  ++epochs_;
  sum_up();
  columns_->end_epoch([&] { return load_of(rows_, dealt); });
  const Sums own = sums_over(rows_.own, true), held_out = sums_over(rows_.own_held_out, false);
  const Instant summing = steady_now();
  const auto sums = sums_.sum({own.loss, own.gap, own.decay, held_out.loss, held_out.correct});
  const Instant end = steady_now();

  const double gap = sums[1] / rows_.count;  // decay: l2 |W|^2 = 1/N sum of (e_y - p) W x
  Epoch epoch{.number = epochs_, .figures = {{"objective", (sums[0] + sums[2] / 2) / rows_.count}, {"duality gap", gap}}, .samples = rows_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end), .converged = gap <= options_.gap};
  if (rows_.held_out > 0) {
    epoch.figures.emplace_back("held-out log loss", sums[3] / rows_.held_out);
    epoch.figures.emplace_back("held-out accuracy", sums[4] / rows_.held_out);
  }
  return epoch;
}

// scores_ and likely_ by the columns that were read last. Returns log sum exp of the scores, which are less their largest.
double Sdca::scores_of(const data::SparseRow& row) {
  double* scores = &scores_[classes_ - width_];  // of two classes the first's is 0
  scores_[0] = 0;
  const double* intercept = &values_[touched_.ones() * width_];
  for (std::size_t j = 0; j < width_; ++j) scores[j] = intercept[j];
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    const double* values = &values_[touched_.place(row.columns[k]) * width_];
    for (std::size_t j = 0; j < width_; ++j) scores[j] += row.values[k] * values[j];
  }
  const double most = *std::max_element(scores_.begin(), scores_.end());
  double sum = 0;
  for (std::size_t j = 0; j < classes_; ++j) sum += likely_[j] = std::exp(scores_[j] -= most);
  for (double& likely : likely_) likely /= sum;
  return std::log(sum);
}

void Sdca::distribution_of(std::uint32_t own) {
  const auto label = static_cast<std::size_t>(rows_.own[own].label);
  const auto wrong = dual(own);
  if (width_ == 1) p_[1 - label] = wrong[0];
  else std::copy(wrong.begin(), wrong.end(), p_.begin());
  p_[label] = 0;
  p_[label] = 1 - std::accumulate(p_.begin(), p_.end(), 0.0);
}

// values_ += factor change_ x^T.
void Sdca::add_to_values(const data::SparseRow& row, double factor) {
  const double* change = &change_[classes_ - width_];
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    double* values = &values_[touched_.place(row.columns[k]) * width_];
    for (std::size_t j = 0; j < width_; ++j) values[j] += factor * row.values[k] * change[j];
  }
  double* intercept = &values_[touched_.ones() * width_];
  for (std::size_t j = 0; j < width_; ++j) intercept[j] += factor * change[j];
}

// changes += 1/(l2 N) change_ x^T.
void Sdca::add_to(factor::Outer<double>& changes, const data::SparseRow& row) const {
  const auto vector = changes.new_vector();
  for (std::size_t j = 0; j < width_; ++j) vector[j] = change_[classes_ - width_ + j] / mass_;
  for (std::size_t k = 0; k < row.columns.size(); ++k) changes.add(touched_.place(row.columns[k]), row.values[k]);
  changes.add(touched_.ones(), 1);
}

// p += s (u - p), u = softmax(W x), for each row after the other:
//   s = min(1, (KL(p || u) + g/2 |u - p|^2) / (|u - p|^2 (g + K |x|^2 / (l2 N)))),    1/g how fast the loss's gradient changes: 1/2, by the scores of all classes
void Sdca::step_by(std::span<const std::uint32_t> numbers) {
  constexpr double g = 2;
  waited_ += read_touched(*columns_, rows_.own, numbers, touched_, values_);
  factor::Outer<double> changes(width_, touched_.keys());
  const double members = rows_.members;
  const double rows_of_weights = width_ == 1 ? 0.5 : 1;  // of two classes, W is the difference of two rows of opposite sign, each of half its size
  for (const std::uint32_t number : numbers) {
    const data::SparseRow row = rows_.own[number];
    const double log_sum = scores_of(row);
    distribution_of(number);
    const double squares = std::transform_reduce(p_.begin(), p_.end(), likely_.begin(), 0.0, std::plus<>(),
                                                 [](double p, double u) { return (u - p) * (u - p); });
    if (squares == 0) continue;
    const double norm = 1 + data::squared_norm(row.values);
    const double room = divergence(p_, scores_, log_sum) + g / 2 * squares;
    const double s = std::min(1.0, room / (squares * (g + rows_of_weights * members * norm / mass_)));
    const auto label = static_cast<std::size_t>(row.label);
    change_[label] = 0;
    for (std::size_t j = 0; j < classes_; ++j) {
      if (j == label) continue;
      float& kept = dual(number)[width_ == 1 ? 0 : j];  // what is kept has changed by just what W is told
      const float before = std::exchange(kept, static_cast<float>(p_[j] + s * (likely_[j] - p_[j])));
      change_[j] = double{before} - kept;
      change_[label] -= change_[j];
    }
    add_to(changes, row);
    add_to_values(row, members / mass_);
  }
  changes.seal();
  columns_->add(std::move(changes));
  const Instant added = steady_now();
  columns_->tick();
  waited_ += seconds_between(added, steady_now());
}

// W(p) anew, so that it is a function of p alone: to the bit the same in a run that goes on from a kept p.
void Sdca::sum_up() {
  const Instant begin = steady_now();
  columns_->barrier();
  columns_->scale(0, rows_.columns + table::Key{1});
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t from = 0; from < rows_.own.size(); from += kRowsAtOnce) {
    numbers.resize(std::min<std::size_t>(kRowsAtOnce, rows_.own.size() - from));
    std::iota(numbers.begin(), numbers.end(), from);
    touched_.collect(rows_.own, numbers);
    factor::Outer<double> changes(width_, touched_.keys());
    for (const std::uint32_t number : numbers) {
      distribution_of(number);
      for (std::size_t j = 0; j < classes_; ++j) change_[j] = -p_[j];
      const auto label = static_cast<std::size_t>(rows_.own[number].label);
      change_[label] = 0;
      change_[label] = -std::accumulate(change_.begin(), change_.end(), 0.0);
      add_to(changes, rows_.own[number]);
    }
    changes.seal();
    columns_->add(std::move(changes));
    columns_->tick();  // so that what is on its way is bounded
  }
  columns_->barrier();
  waited_ += seconds_between(begin, steady_now());
}

Sdca::Sums Sdca::sums_over(const data::SparseSlice& rows, bool own) {
  Sums sums;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t from = 0; from < rows.size(); from += kRowsAtOnce) {
    numbers.resize(std::min<std::size_t>(kRowsAtOnce, rows.size() - from));
    std::iota(numbers.begin(), numbers.end(), from);
    waited_ += read_touched(*columns_, rows, numbers, touched_, values_);
    for (const std::uint32_t number : numbers) {
      const double log_sum = scores_of(rows[number]);
      const auto label = static_cast<std::size_t>(rows[number].label);
      sums.loss += log_sum - scores_[label];
      sums.correct += std::max_element(scores_.begin(), scores_.end()) == scores_.begin() + static_cast<std::ptrdiff_t>(label) ? 1 : 0;
      if (!own) continue;
      distribution_of(number);
      sums.gap += divergence(p_, scores_, log_sum);
      sums.decay += scores_[label] - std::inner_product(p_.begin(), p_.end(), scores_.begin(), 0.0);
    }
  }
  return sums;
}

// --- models

Tensors Sdca::model() {
  const std::vector<table::Key> own(rows_.numbers.begin(), rows_.numbers.end());
  assign_rows(all_duals_, own, dual_);
  all_duals_.barrier();
  Tensors model;
  if (rows_.member == 0) {
    model.emplace("weights", tensor_from(*columns_, {0, rows_.columns}));
    model.emplace("intercept", Tensor{{width_}, tensor_from(*columns_, {rows_.columns, rows_.columns + table::Key{1}}).values});
    model.emplace("dual", tensor_from(all_duals_, {0, rows_.count}));
  }
  all_duals_.barrier();  // nobody changes what rank 0 has not read
  return model;
}

void Sdca::begin_with(const Tensors&) {
  throw Error(Code::unsupported, "ends at the same weights wherever it begins, and begins with numbers of its rows, not with weights", "sdca", "take sgd");
}

unsigned Sdca::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({rows_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0, 0, 0})[0]);
  if (epochs_ == 0) return 0;
  if (rows_.member == 0) assign_rows(all_duals_, KeyRange{0, rows_.count}, tensor_of(model, "dual", {rows_.count, width_}).values);
  all_duals_.barrier();
  const std::vector<table::Key> own(rows_.numbers.begin(), rows_.numbers.end());
  read_rows(all_duals_, own, dual_);
  sum_up();
  return epochs_;
}

}  // namespace shoal::learn
