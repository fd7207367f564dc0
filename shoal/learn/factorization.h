// Matrix factorization: ratings as products of two thin matrices, by stochastic gradient descent (Koren, Bell and Volinsky, Computer 42(8), 2009),
// on all members of a job.
//
//   minimise  sum over ratings r of (user u, item i) of  1/2 (r - m - p_u q_i)^2 + l2/2 (|p_u|^2 + |q_i|^2),   m the mean of all ratings
//
// A user's ratings and its row p_u are on one member only; the rows q_i of items are in a shared table. A clock is a minibatch: the member reads
// the rows of its items, goes through its ratings one by one, and adds by how much the rows have changed. All members have the same number of clocks an epoch.
// Under bsp a model is a function of data, options and the number of members, to the bit; under other consistencies it is not.
// Threads: one; every call by all members.
#pragma once

#include <span>

#include "shoal/learn/learner.h"
#include "shoal/learn/ratings.h"
#include "shoal/learn/rows.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct FactorizationOptions {
  std::size_t factors = 32;    // of a user and of an item: the rank of the product
  StepSize step{.sigma = 0.1, .decreasing = true};
  double l2 = 0.08;
  std::size_t batch = 1000;    // ratings of one member in a clock
  std::uint64_t seed = 1;      // of first values and order
  bool biases = false;         // a number each user and each item adds to its ratings
  bool non_negative = false;   // no factor is below zero, and no mean is taken off (Lee and Seung's NMF, by projected steps)
  table::Consistency consistency = table::Bsp{};
  // Columns of a row: the factors, and behind them the bias if there is one.
  std::size_t width() const { return factors + (biases ? 1 : 0); }
};

// What user and item rows say of a rating, less the mean.
float product(std::span<const float> user, std::span<const float> item, const FactorizationOptions& options);

// A step down the gradient of one rating, in place: p += step (e q - l2 p), q += step (e p - l2 q), where e is what the rating has above the product; so
// too for biases, whose partner is 1. Returns e, as it was before.
float descend(std::span<float> user, std::span<float> item, float rating, float step, const FactorizationOptions& options);

class Factorization final : public Learner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be, and for a rating below zero where none may be.
  Factorization(net::Transport& transport, Ratings ratings, const FactorizationOptions& options, const table::TablesOptions& tables = {});

  // Figures: "training RMSE", of each rating before its step; "held-out RMSE" after the epoch, if there are such ratings.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  Tensors model() override;  // "users" and "items", a row each
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;

  double mean() const { return options_.non_negative ? 0 : ratings_.mean; }

 private:
  struct Minibatch {             // of a clock
    std::span<const std::uint32_t> ratings;  // numbers in ratings_.own
    std::vector<table::Key> items;           // different ones
  };
  KeyRange own_share(std::uint64_t rows) const { return {ratings_.member, rows, ratings_.members}; }
  std::span<float> user(std::uint32_t own) { return std::span(users_).subspan(own * width_, width_); }
  void collect_items(Minibatch& minibatch);
  double learn_from(const Minibatch& minibatch, float step);
  void project_items();
  std::pair<double, double> squares_held_out();
  void begin_users();
  void begin_items();

  const FactorizationOptions options_;
  const std::size_t width_;
  const Ratings ratings_;
  table::Tables tables_;
  table::Worker worker_;
  table::Table<float> items_;
  table::Table<float> all_users_;             // rows of users on their way into a model and out of one
  SharedSums sums_;
  std::vector<float> users_;                  // own, row after row
  std::vector<std::uint32_t> place_of_item_;  // in rows_, of items of the current minibatch
  std::vector<float> rows_, before_;          // of the current minibatch's items
  unsigned epochs_ = 0;                       // done
  double waited_ = 0;
};

}  // namespace shoal::learn
