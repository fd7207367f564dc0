#include "shoal/learn/whole_factors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/learn/factorization.h"
#include "shoal/learn/memory.h"

namespace shoal::learn {
namespace {

constexpr std::size_t kMostWholeFactors = 4096;  // the squares of more do not fit into a processor's caches by far
constexpr std::size_t kGivenTogether = 1 << 20;  // from one time that is told how far it is to the next

const FactorizationOptions& whole(const FactorizationOptions& options, const Ratings& ratings) {
  if (options.biases) shoal::refuse("a whole matrix is learnt without them", "biases");
  if (!options.non_negative) shoal::refuse("a whole matrix is learnt by non-negative factors alone", "missing", "ask for these, too");
  if (!std::holds_alternative<table::Bsp>(options.consistency)) shoal::refuse("a whole matrix is learnt under bsp alone", "consistency");
  if (options.factors > kMostWholeFactors) shoal::refuse(std::to_string(options.factors) + " are more than the " + std::to_string(kMostWholeFactors) + " of a whole matrix", "factors");
  const double k = static_cast<double>(options.factors);
  need_memory(k * (ratings.own_users() * (sizeof(float) + sizeof(double)) + ratings.items * (2 * sizeof(float) + 2 * sizeof(double))),
              std::to_string(ratings.users) + " users and " + std::to_string(ratings.items) + " items");
  return options;
}

void add_multiple(double* into, const float* row, double factor, std::size_t k) {
  for (std::size_t t = 0; t < k; ++t) into[t] += factor * row[t];
}

double dot(const double* one, const double* other, std::size_t k) {
  constexpr std::size_t lanes = 4;
  std::array<double, lanes> sums{};
  std::size_t t = 0;
  for (; t + lanes <= k; t += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += one[t + lane] * other[t + lane];
  }
  double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; t < k; ++t) sum += one[t] * other[t];
  return sum;
}

// R^T R of rows R.
std::vector<double> squares_of(const std::vector<float>& rows, std::size_t k) {
  std::vector<double> squares(k * k);
  for (std::size_t row = 0; row < rows.size(); row += k) {
    for (std::size_t t = 0; t < k; ++t) {
      if (rows[row + t] != 0) add_multiple(&squares[t * k], &rows[row], rows[row + t], k);
    }
  }
  return squares;
}

// One sweep (whole_factors.h) over rows, for which `products` has b; `squares` is G.
void sweep(std::vector<float>& rows, const std::vector<double>& products, std::vector<double> squares, double l2, std::size_t k) {
  for (std::size_t t = 0; t < k; ++t) squares[t * k + t] += l2;
  std::vector<double> p(k);
  for (std::size_t row = 0; row < rows.size(); row += k) {
    std::copy_n(&rows[row], k, p.begin());
    for (std::size_t t = 0; t < k; ++t) {
      const double* const g = &squares[t * k];
      if (g[t] > 0) p[t] = std::max(0.0, p[t] - (dot(g, p.data(), k) - products[row + t]) / g[t]);
    }
    std::transform(p.begin(), p.end(), &rows[row], [](double value) { return static_cast<float>(value); });
  }
}

// |X|^2, where numbers of one cell add up.
double squared_norm_of(const data::TripleSlice& given, std::uint32_t rows, std::uint32_t columns) {
  std::vector<std::uint32_t> ends(rows + std::size_t{1}), by_row(given.size());
  for (const std::uint32_t row : given.rows) ++ends[row + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  for (std::uint32_t i = 0; i < given.size(); ++i) by_row[ends[given.rows[i]]++] = i;
  std::vector<double> cells(columns);  // of a row
  double norm = 0;
  for (std::size_t row = 0, from = 0; row < rows; from = ends[row++]) {
    for (std::size_t i = from; i < ends[row]; ++i) cells[given.columns[by_row[i]]] += given.values[by_row[i]];
    for (std::size_t i = from; i < ends[row]; ++i) {
      const double cell = std::exchange(cells[given.columns[by_row[i]]], 0.0);
      norm += cell * cell;
    }
  }
  return norm;
}

}  // namespace

WholeFactorization::WholeFactorization(net::Transport& transport, Ratings ratings, const FactorizationOptions& options, const table::TablesOptions& tables)
    : FactorLearner(transport, std::move(ratings), whole(options, ratings), tables),
      products_(worker_.open<double>({.name = "products", .width = width_, .consistency = table::Bsp{}, .initial = {}})),
      products_of_users_(users_.size()) {
  const data::TripleSlice own = ratings_.own.all();
  std::vector<bool> has(ratings_.items);
  for (const std::uint32_t item : own.columns) has[item] = true;
  for (std::uint32_t item = 0; item < ratings_.items; ++item) {
    if (has[item]) touched_.push_back(item);
  }
  products_of_touched_.resize(touched_.size() * width_);
  squared_norm_ = squared_norm_of(own, ratings_.own_users(), ratings_.items);
}

// What waits for others, or for servers.
template <class Do>
void WholeFactorization::together(const Do& what) {
  const Instant begin = steady_now();
  what();
  waited_ += seconds_between(begin, steady_now());
}

std::vector<double> WholeFactorization::squares_at(const KeyRange& rows) {
  std::vector<double> squares(width_ * width_);
  together([&] { read_rows(products_, rows, squares); });
  return squares;
}

// each(first number of the user's row, of the item's among those touched, value) of own numbers.
template <class Each>
void WholeFactorization::each_given(const std::function<void(double part)>& progressed, const Each& each) {
  const data::TripleSlice own = ratings_.own.all();
  for (std::size_t begin = 0; begin < own.size(); begin += kGivenTogether) {
    const std::size_t end = std::min(begin + kGivenTogether, own.size());
    for (std::size_t i = begin; i < end; ++i) each(own.rows[i] * width_, place_of_item_[own.columns[i]] * width_, own.values[i]);
    progressed(static_cast<double>(end) / static_cast<double>(own.size()));
  }
}

// --- an epoch

Epoch WholeFactorization::learn(const std::function<void(double part)>& progressed) {
  const Instant begin = steady_now();
  waited_ = 0;
  if (squares_.empty()) take_items();
  improve_users([&](double part) { progressed(part / 2); });
  const std::vector<double> squares_of_users = sum_up_users([&](double part) { progressed((1 + part) / 2); });
  const double agreement = improve_items(squares_of_users);
  // |X - P Q^T|^2 = |X|^2 - 2 <X, P Q^T> + <P^T P, Q^T Q>; the second is <X^T P, Q>.
  return end_epoch(begin, squared_norm_, agreement, [&](double norm, double all_agreement) {
    const double squares = norm - 2 * all_agreement + dot(squares_of_users.data(), squares_.data(), squares_.size());
    return std::sqrt(std::max(squares, 0.0) / ratings_.users / ratings_.items);
  });
}

// What an epoch begins with, of items that are in the table: as improve_items() left it, to the bit.
void WholeFactorization::take_items() {
  const KeyRange share = own_share(ratings_.items);
  own_items_.resize(share.size() * width_);
  together([&] { read_rows(items_, share, own_items_); });
  add_squares_of_items();
  together([&] { products_.barrier(); });
  squares_ = squares_at(item_squares());
}

// Sums are begun anew by one member each, when everybody who reads them has: what is assigned in a clock stands before all that is added in it.
void WholeFactorization::begin_anew(const KeyRange& rows) { assign_rows(products_, rows, std::vector<double>(rows.size() * width_)); }

void WholeFactorization::add_squares_of_items() {
  const std::vector<double> squares = squares_of(own_items_, width_);
  together([&] {
    begin_anew(own_of(item_squares()));
    products_.add(keys_in(item_squares()), squares);
  });
}

void WholeFactorization::improve_users(const std::function<void(double part)>& progressed) {
  for (std::size_t place = 0; place < touched_.size(); ++place) place_of_item_[touched_[place]] = static_cast<std::uint32_t>(place);
  rows_.resize(touched_.size() * width_);
  together([&] { read_rows(items_, touched_, rows_); });
  std::fill(products_of_users_.begin(), products_of_users_.end(), 0.0);
  each_given(progressed, [&](std::size_t user, std::size_t item, float value) { add_multiple(&products_of_users_[user], &rows_[item], value, width_); });
  sweep(users_, products_of_users_, squares_, options_.l2, width_);
}

// Returns P^T P; X^T P is then in the table.
std::vector<double> WholeFactorization::sum_up_users(const std::function<void(double part)>& progressed) {
  std::fill(products_of_touched_.begin(), products_of_touched_.end(), 0.0);
  each_given(progressed, [&](std::size_t user, std::size_t item, float value) { add_multiple(&products_of_touched_[item], &users_[user], value, width_); });
  const std::vector<double> squares = squares_of(users_, width_);
  together([&] {
    in_parts(std::span<const table::Key>(touched_), width_, std::span(products_of_touched_), [&](auto keys, auto rows) { products_.add(keys, rows); });
    products_.add(keys_in(user_squares()), squares);
    products_.barrier();
  });
  return squares_at(user_squares());
}

// Each member its share. Returns <X^T P, Q> of it.
double WholeFactorization::improve_items(const std::vector<double>& squares_of_users) {
  const KeyRange share = own_share(ratings_.items);
  std::vector<double> products(own_items_.size());
  together([&] { read_rows(products_, share, products); });
  sweep(own_items_, products, squares_of_users, options_.l2, width_);
  double agreement = 0;
  for (std::size_t i = 0; i < products.size(); ++i) agreement += products[i] * own_items_[i];
  add_squares_of_items();  // those of the epoch before were read before the barrier of sum_up_users()
  together([&] {
    begin_anew(share);
    assign_rows(items_, share, own_items_);
    products_.arrive();
    items_.barrier();
    products_.meet();
    begin_anew(own_of(user_squares()));
  });
  squares_ = squares_at(item_squares());
  return agreement;
}

std::unique_ptr<FactorLearner> factor_learner(net::Transport& transport, Ratings ratings, const FactorizationOptions& options, const table::TablesOptions& tables) {
  if (options.missing == Missing::zero) return std::make_unique<WholeFactorization>(transport, std::move(ratings), options, tables);
  return std::make_unique<Factorization>(transport, std::move(ratings), options, tables);
}

}  // namespace shoal::learn
