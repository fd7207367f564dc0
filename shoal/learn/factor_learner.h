// What factorizations have in common (factorization.h, whole_factors.h): a row of each user, on the member that has the user's ratings, and rows of items in a
// shared table; their first values, how far they are from held-out ratings, and models of both, in and out.
// Threads: one; every call by all members.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/learn/learner.h"
#include "shoal/learn/ratings.h"
#include "shoal/learn/rows.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

// What a rating is that the data does not give: nobody knows it, or it is 0.
enum class Missing : std::uint8_t { unknown, zero };
Missing missing_from(const std::string& name);  // throws Error{invalid_argument} for one that is none

struct FactorizationOptions {
  std::size_t factors = 32;    // of a user and of an item: the rank of the product
  StepSize step{.sigma = 0.1, .decreasing = true};
  double l2 = 0.08;
  std::size_t batch = 1000;    // ratings of one member in a clock
  std::uint64_t seed = 1;      // of first values and order
  bool biases = false;         // a number each user and each item adds to its ratings
  bool non_negative = false;   // no factor is below zero, and no mean is taken off (Lee and Seung's NMF)
  table::Consistency consistency = table::Bsp{};
  Missing missing = Missing::unknown;  // zero: without steps, non-negative and under bsp (whole_factors.h)
  // Columns of a row: the factors, and behind them the bias if there is one.
  std::size_t width() const { return factors + (biases ? 1 : 0); }
};

// What user and item rows say of a rating, less the mean.
float product(std::span<const float> user, std::span<const float> item, const FactorizationOptions& options);

// Of what is learnt from: of the ratings, or of the whole matrix.
double mean_of(const Ratings& ratings, Missing missing);

class FactorLearner : public Learner {
 public:
  Tensors model() override;  // "users" and "items", a row each
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;

  double mean() const { return options_.non_negative ? 0 : ratings_.mean; }

 protected:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be, and for a rating below zero where none may be.
  FactorLearner(net::Transport& transport, Ratings&& ratings, const FactorizationOptions& options, const table::TablesOptions& tables);

  KeyRange own_share(std::uint64_t rows) const { return {ratings_.member, rows, ratings_.members}; }
  std::span<float> user(std::uint32_t own) { return std::span(users_).subspan(own * width_, width_); }
  // The report of an epoch that began then, whose steps are done: with held-out ratings, and as error of training rmse(sums of all members' one and other).
  Epoch end_epoch(Instant begin, double one, double other, const std::function<double(double one, double other)>& rmse);

  const FactorizationOptions options_;
  const std::size_t width_;
  const Ratings ratings_;
  table::Tables tables_;
  table::Worker worker_;
  table::Table<float> items_;
  std::vector<float> users_;                  // own, row after row
  std::vector<std::uint32_t> place_of_item_;  // in rows_, of those items whose rows are there
  std::vector<float> rows_;
  unsigned epochs_ = 0;                       // done
  double waited_ = 0;                         // in this epoch

 private:
  void begin_users();
  void begin_items();
  std::pair<double, double> squares_held_out();

  table::Table<float> all_users_;             // rows of users on their way into a model and out of one
  SharedSums sums_;
};

// In place of each number below zero.
void project(std::span<float> values);

}  // namespace shoal::learn
