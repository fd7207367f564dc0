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
#include <vector>

#include "shoal/learn/factor_learner.h"

namespace shoal::learn {

// A step down the gradient of one rating, in place: p += step (e q - l2 p), q += step (e p - l2 q), where e is what the rating has above the product; so
// too for biases, whose partner is 1. Returns e, as it was before.
float descend(std::span<float> user, std::span<float> item, float rating, float step, const FactorizationOptions& options);

class Factorization final : public FactorLearner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be, and for a rating below zero where none may be.
  Factorization(net::Transport& transport, Ratings ratings, const FactorizationOptions& options, const table::TablesOptions& tables = {});

  // Figures: "training RMSE", of each rating before its step; "held-out RMSE" after the epoch, if there are such ratings.
  Epoch learn(const std::function<void(double part)>& progressed) override;

 private:
  struct Minibatch {             // of a clock
    std::span<const std::uint32_t> ratings;  // numbers in ratings_.own
    std::vector<table::Key> items;           // different ones
  };
  void collect_items(Minibatch& minibatch);
  double learn_from(const Minibatch& minibatch, float step);
  void project_items();

  std::vector<float> before_;  // of the current minibatch's items, whose rows are in rows_
};

}  // namespace shoal::learn
