#include "shoal/learn/factorization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {

constexpr double kFirstDeviation = 0.1;  // of factors
enum Site : std::uint32_t { user_rows, item_rows };

const FactorizationOptions& checked(const FactorizationOptions& options, const Ratings& ratings) {
  const auto refuse = [](const char* flag, const std::string& what) { throw Error(Code::invalid_argument, what, flag); };
  if (options.factors < 1 || options.factors > 1 << 16) refuse("factors", std::to_string(options.factors) + " is not between 1 and 65536");
  if (!(options.step.sigma > 0) || !std::isfinite(options.step.sigma)) refuse("step", "must be above zero");
  if (!(options.l2 >= 0) || !std::isfinite(options.l2)) refuse("l2", "must not be below zero");
  if (options.batch < 1) refuse("batch", "must be at least 1");
  if (options.non_negative && options.biases) refuse("biases", "a non-negative factorization has none");
  if (options.non_negative && ratings.least < 0) refuse("non-negative", "the data has a value below zero");
  need_memory((static_cast<double>(ratings.own_users()) * options.width() + ratings.items * (1.0 + options.width() / ratings.members)) * sizeof(float),
              std::to_string(ratings.users) + " users and " + std::to_string(ratings.items) + " items");
  if (ratings.most > std::numeric_limits<std::uint32_t>::max()) refuse("data", "a member has more than 4,294,967,295 ratings: take more members");
  return options;
}

// A row nobody has learnt: small factors, of which a product is near zero; non-negative ones give about the mean.
void fill_first(std::span<float> row, std::uint32_t number, Site site, double mean, const FactorizationOptions& options) {
  const auto factors = row.first(options.factors);
  if (options.non_negative) {
    fill_uniform(factors, 2 * std::sqrt(std::max(mean, 0.0) / static_cast<double>(options.factors)), options.seed, number, site);
  } else {
    fill_normal(factors, kFirstDeviation, options.seed, number, site);
  }
  if (options.biases) row.back() = 0;
}

void project(std::span<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
}

// The part of what is done number `of` parts that number `part` begins with.
std::size_t begin_of(std::size_t part, std::size_t count, std::size_t of) { return part * count / of; }

}  // namespace

float product(std::span<const float> user, std::span<const float> item, const FactorizationOptions& options) {
  constexpr std::size_t lanes = 8;  // sums side by side: one alone would wait for itself
  std::array<float, lanes> sums{};
  std::size_t k = 0;
  for (; k + lanes <= options.factors; k += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += user[k + lane] * item[k + lane];
  }
  float sum = options.biases ? user.back() + item.back() : 0;
  for (; k < options.factors; ++k) sum += user[k] * item[k];
  for (const float lane : sums) sum += lane;
  return sum;
}

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
    : options_(checked(options, ratings)), width_(options.width()), ratings_(std::move(ratings)), tables_(transport, tables), worker_(tables_.worker()),
      items_(worker_.open<float>({.name = "items", .width = width_, .consistency = options.consistency, .initial = {}})),
      all_users_(worker_.open<float>({.name = "users", .width = width_, .consistency = table::Bsp{}, .initial = {}})),
      sums_(worker_, "sums", 4), place_of_item_(ratings_.items) {
  begin_users();
  begin_items();
}

void Factorization::begin_users() {
  users_.resize(ratings_.own_users() * width_);
  for (std::uint32_t own = 0; own < ratings_.own_users(); ++own) {
    fill_first(user(own), own * ratings_.members + ratings_.member, user_rows, ratings_.mean, options_);
  }
}

// Each member writes a share of them.
void Factorization::begin_items() {
  const KeyRange share = own_share(ratings_.items);
  std::vector<float> rows(share.size() * width_);
  for (std::size_t i = 0; i < share.size(); ++i) {
    fill_first(std::span(rows).subspan(i * width_, width_), static_cast<std::uint32_t>(share.begin + i * share.stride), item_rows, ratings_.mean, options_);
  }
  assign_rows(items_, share, rows);
  items_.barrier();
}

// --- an epoch

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
  ++epochs_;
  const Instant meeting = steady_now();
  items_.barrier();
  if (options_.non_negative) project_items();
  waited_ += seconds_between(meeting, steady_now());
  const auto [held_out_squares, held_out] = squares_held_out();
  const Instant summing = steady_now();
  const auto sums = sums_.sum({squares, static_cast<double>(own), held_out_squares, held_out});
  const Instant end = steady_now();

  Epoch epoch{.number = epochs_, .figures = {{"training RMSE", std::sqrt(sums[0] / sums[1])}}, .samples = ratings_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end)};
  if (sums[3] > 0) epoch.figures.emplace_back("held-out RMSE", std::sqrt(sums[2] / sums[3]));
  return epoch;
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

// Squared errors, and how many, of this member's held-out ratings, by rows that hold everybody's changes; a part at a time, for they may be on disk.
std::pair<double, double> Factorization::squares_held_out() {
  constexpr std::size_t together = 1 << 20;
  const data::TripleSlice held_out = ratings_.own_held_out.all();
  double squares = 0;
  for (std::size_t begin = 0; begin < held_out.size(); begin += together) {
    const std::size_t end = std::min(begin + together, held_out.size());
    const Instant asking = steady_now();
    std::vector<table::Key> items(held_out.columns.begin() + static_cast<std::ptrdiff_t>(begin), held_out.columns.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    for (std::size_t place = 0; place < items.size(); ++place) place_of_item_[items[place]] = static_cast<std::uint32_t>(place);
    rows_.resize(items.size() * width_);
    items_.read(items, rows_);
    waited_ += seconds_between(asking, steady_now());
    for (std::size_t i = begin; i < end; ++i) {
      const auto item = std::span(rows_).subspan(place_of_item_[held_out.columns[i]] * width_, width_);
      const double error = held_out.values[i] - mean() - product(user(held_out.rows[i]), item, options_);
      squares += error * error;
    }
  }
  return {squares, static_cast<double>(held_out.size())};
}

// --- models

Tensors Factorization::model() {
  assign_rows(all_users_, own_share(ratings_.users), users_);
  all_users_.barrier();
  items_.barrier();
  Tensors model;
  const auto take = [&](const char* name, table::Table<float>& table, std::uint64_t rows) {
    Tensor tensor{{rows, width_}, std::vector<float>(rows * width_)};
    read_rows(table, {0, rows}, tensor.values);
    model.emplace(name, std::move(tensor));
  };
  if (ratings_.member == 0) {
    take("users", all_users_, ratings_.users);
    take("items", items_, ratings_.items);
  }
  items_.barrier();  // nobody changes an item that rank 0 has not read
  return model;
}

void Factorization::begin_with(const Tensors& first) {
  if (ratings_.member == 0) {
    assign_rows(all_users_, {0, ratings_.users}, tensor_of(first, "users", {ratings_.users, width_}).values);
    assign_rows(items_, {0, ratings_.items}, tensor_of(first, "items", {ratings_.items, width_}).values);
  }
  all_users_.barrier();
  items_.barrier();
  read_rows(all_users_, own_share(ratings_.users), users_);
  if (options_.non_negative) project(users_);  // who has no rating stays as it is; items are projected after each epoch
  all_users_.barrier();
}

unsigned Factorization::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({ratings_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0, 0})[0]);
  if (epochs_ > 0) begin_with(model);
  return epochs_;
}

}  // namespace shoal::learn
