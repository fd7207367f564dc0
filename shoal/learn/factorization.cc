#include "shoal/learn/factorization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {

const FactorizationOptions& with_steps(const FactorizationOptions& options) {
  if (!(options.step.sigma > 0) || !std::isfinite(options.step.sigma)) shoal::refuse("must be above zero", "step");
  if (options.batch < 1) shoal::refuse("must be at least 1", "batch");
  return options;
}

// The part of what is done number `of` parts that number `part` begins with.
std::size_t begin_of(std::size_t part, std::size_t count, std::size_t of) { return part * count / of; }

}  // namespace

float descend(std::span<float> user, std::span<float> item, float rating, float step, const FactorizationOptions& options) {
  const float error = rating - product(user, item, options), l2 = static_cast<float>(options.l2);
  const float least = options.non_negative ? 0.0f : -std::numeric_limits<float>::infinity();
  for (std::size_t k = 0; k < options.factors; ++k) {
    const float p = user[k], q = item[k];
    user[k] = std::max(least, p + step * (error * q - l2 * p));
    item[k] = std::max(least, q + step * (error * p - l2 * q));
  }
  if (options.biases) {
    user.back() += step * (error - l2 * user.back());
    item.back() += step * (error - l2 * item.back());
  }
  return error;
}

Factorization::Factorization(net::Transport& transport, Ratings ratings, const FactorizationOptions& options, const table::TablesOptions& tables)
    : FactorLearner(transport, std::move(ratings), with_steps(options), tables) {}

Epoch Factorization::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  const std::size_t own = ratings_.own.size(), clocks = (ratings_.most - 1) / options_.batch + 1;
  Order order(static_cast<std::uint32_t>(own), options_.seed, epochs_ + 1, ratings_.member, ratings_.own.on_disk());
  double squares = 0;
  for (std::size_t clock = 0; clock < clocks; ++clock) {
    const std::size_t from = begin_of(clock, own, clocks), to = begin_of(clock + 1, own, clocks);
    Minibatch minibatch{order.take(to - from), {}};
    collect_items(minibatch);
    squares += learn_from(minibatch, static_cast<float>(options_.step.at(epochs_ + static_cast<double>(clock) / static_cast<double>(clocks))));
    progressed(static_cast<double>(clock + 1) / static_cast<double>(clocks));
    const Instant done = steady_now();
    items_.tick();
    waited_ += seconds_between(done, steady_now());
  }
  const Instant meeting = steady_now();
  items_.barrier();
  if (options_.non_negative) project_items();
  waited_ += seconds_between(meeting, steady_now());
  return end_epoch(begin, squares, static_cast<double>(own), [](double all_squares, double ratings) { return std::sqrt(all_squares / ratings); });
}

void Factorization::collect_items(Minibatch& minibatch) {
  constexpr std::uint32_t nowhere = ~std::uint32_t{0};
  const auto items = ratings_.own.all().columns;
  for (const std::uint32_t rating : minibatch.ratings) place_of_item_[items[rating]] = nowhere;
  for (const std::uint32_t rating : minibatch.ratings) {
    const std::uint32_t item = items[rating];
    if (place_of_item_[item] != nowhere) continue;
    place_of_item_[item] = static_cast<std::uint32_t>(minibatch.items.size());
    minibatch.items.push_back(item);
  }
}

// The sum of squared errors.
double Factorization::learn_from(const Minibatch& minibatch, float step) {
  before_.resize(minibatch.items.size() * width_);
  const Instant asked = steady_now();
  items_.read(minibatch.items, before_);
  waited_ += seconds_between(asked, steady_now());
  rows_ = before_;
  if (options_.non_negative) project(rows_);
  const auto off = static_cast<float>(mean());
  const data::TripleSlice own = ratings_.own.all();
  double squares = 0;
  for (const std::uint32_t rating : minibatch.ratings) {
    const std::size_t place = place_of_item_[own.columns[rating]] * width_;
    const float error = descend(user(own.rows[rating]), std::span(rows_).subspan(place, width_), own.values[rating] - off, step, options_);
    squares += static_cast<double>(error) * error;
  }
  if (!std::isfinite(squares)) {
    throw Error(Code::invalid_argument, "numbers grew without bound in epoch " + std::to_string(epochs_ + 1), "step", "take a smaller one, or with several members a smaller batch");
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] -= before_[i];
  items_.add(minibatch.items, rows_);
  return squares;
}

// Changes of several members may together have gone below zero. Each member mends a share of the rows.
void Factorization::project_items() {
  const KeyRange share = own_share(ratings_.items);
  rows_.resize(share.size() * width_);
  read_rows(items_, share, rows_);
  project(rows_);
  items_.barrier();  // all have read
  assign_rows(items_, share, rows_);
  items_.barrier();
}

}  // namespace shoal::learn
