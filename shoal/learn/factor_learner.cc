#include "shoal/learn/factor_learner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "shoal/core/error.h"
#include "shoal/learn/memory.h"
#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {

constexpr double kFirstDeviation = 0.1;  // of factors
enum Site : std::uint32_t { user_rows, item_rows };

const FactorizationOptions& checked(const FactorizationOptions& options, const Ratings& ratings) {
  if (options.factors < 1 || options.factors > 1 << 16) shoal::refuse(std::to_string(options.factors) + " is not between 1 and 65536", "factors");
  if (!(options.l2 >= 0) || !std::isfinite(options.l2)) shoal::refuse("must not be below zero", "l2");
  if (options.non_negative && options.biases) shoal::refuse("a non-negative factorization has none", "biases");
  if (options.non_negative && ratings.least < 0) shoal::refuse("the data has a value below zero", "non-negative");
  need_memory((static_cast<double>(ratings.own_users()) * options.width() + ratings.items * (1.0 + options.width() / ratings.members)) * sizeof(float),
              std::to_string(ratings.users) + " users and " + std::to_string(ratings.items) + " items");
  if (ratings.most > std::numeric_limits<std::uint32_t>::max()) shoal::refuse("a member has more than 4,294,967,295 ratings: take more members", "data");
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

}  // namespace

Missing missing_from(const std::string& name) {
  if (name != "unknown" && name != "zero") shoal::refuse("\"" + name + "\" is none", "missing", "unknown or zero");
  return name == "zero" ? Missing::zero : Missing::unknown;
}

double mean_of(const Ratings& ratings, Missing missing) {
  if (missing == Missing::unknown) return ratings.mean;
  return ratings.mean * static_cast<double>(ratings.count) / ratings.users / ratings.items;
}

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

void project(std::span<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
}

FactorLearner::FactorLearner(net::Transport& transport, Ratings&& ratings, const FactorizationOptions& options, const table::TablesOptions& tables)
    : options_(checked(options, ratings)), width_(options.width()), ratings_(std::move(ratings)), tables_(transport, tables), worker_(tables_.worker()),
      items_(worker_.open<float>({.name = "items", .width = width_, .consistency = options.consistency, .initial = {}})), place_of_item_(ratings_.items),
      all_users_(worker_.open<float>({.name = "users", .width = width_, .consistency = table::Bsp{}, .initial = {}})), sums_(worker_, "sums", 4) {
  begin_users();
  begin_items();
}

void FactorLearner::begin_users() {
  users_.resize(ratings_.own_users() * width_);
  for (std::uint32_t own = 0; own < ratings_.own_users(); ++own) {
    fill_first(user(own), own * ratings_.members + ratings_.member, user_rows, mean_of(ratings_, options_.missing), options_);
  }
}

// Each member writes a share of them.
void FactorLearner::begin_items() {
  const KeyRange share = own_share(ratings_.items);
  std::vector<float> rows(share.size() * width_);
  for (std::size_t i = 0; i < share.size(); ++i) {
    fill_first(std::span(rows).subspan(i * width_, width_), static_cast<std::uint32_t>(share.begin + i * share.stride), item_rows,
               mean_of(ratings_, options_.missing), options_);
  }
  assign_rows(items_, share, rows);
  items_.barrier();
}

// --- the end of an epoch

Epoch FactorLearner::end_epoch(Instant begin, double one, double other, const std::function<double(double one, double other)>& rmse) {
  ++epochs_;
  const auto [held_out_squares, held_out] = squares_held_out();
  const Instant summing = steady_now();
  const auto sums = sums_.sum({one, other, held_out_squares, held_out});
  const Instant end = steady_now();
  Epoch epoch{.number = epochs_, .figures = {{"training RMSE", rmse(sums[0], sums[1])}}, .samples = ratings_.count,
              .seconds = seconds_between(begin, end), .waited = waited_ + seconds_between(summing, end)};
  if (sums[3] > 0) epoch.figures.emplace_back("held-out RMSE", std::sqrt(sums[2] / sums[3]));
  return epoch;
}

// Squared errors, and how many, of this member's held-out ratings, by rows that hold everybody's changes; a part at a time, for they may be on disk.
std::pair<double, double> FactorLearner::squares_held_out() {
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

Tensors FactorLearner::model() {
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

void FactorLearner::begin_with(const Tensors& first) {
  if (ratings_.member == 0) {
    const auto give = [&](const char* name, table::Table<float>& table, std::uint64_t rows) {
      std::vector<float> values = tensor_of(first, name, {rows, width_}).values;
      if (options_.non_negative) project(values);
      assign_rows(table, {0, rows}, values);
    };
    give("users", all_users_, ratings_.users);
    give("items", items_, ratings_.items);
  }
  all_users_.barrier();
  items_.barrier();
  read_rows(all_users_, own_share(ratings_.users), users_);
  all_users_.barrier();
}

unsigned FactorLearner::restore(unsigned epochs, const Tensors& model) {
  epochs_ = static_cast<unsigned>(sums_.sum({ratings_.member == 0 ? static_cast<double>(epochs) : 0, 0, 0, 0})[0]);
  if (epochs_ > 0) begin_with(model);
  return epochs_;
}

}  // namespace shoal::learn
