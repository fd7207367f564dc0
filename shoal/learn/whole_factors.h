// Non-negative factors of a whole matrix: what the data does not give is 0, as of words in documents or other counts; by coordinate descent over the columns of
// one factor, then of the other (HALS: Cichocki and Phan, IEICE Trans. E92-A, 2009; Hsieh and Dhillon, KDD'11), on all members of a job.
//
//   minimise  1/2 |X - P Q^T|^2 + l2/2 (|P|^2 + |Q|^2),   P and Q >= 0;  X has a row for each user and a column for each item; what is given twice adds up
//
// An epoch is one sweep over P and one over Q. Where G = Q^T Q and b = X Q are known each row p of P is improved alone, one factor t after another:
//
//   p_t <- max(0, p_t - (G_t p + l2 p_t - b_t) / (G_tt + l2))
//
// and so is each row of Q where P^T P and X^T P are. All of it touches only numbers that are given, and rows: O(given k + (users + items) k^2).
//
//   items_     Q                            each member reads the rows of its users' items, and improves a share of all
//   products_  X^T P, P^T P, Q^T Q          a row for each item, and k and k for the squares: sums over members of what their users, or their shares, have
//
// P, Q are 32-bit numbers between sweeps, sums are doubles. A model is a function of data, options and the number of members, to the bit.
// Threads: one; every call by all members.
#pragma once

#include <memory>
#include <vector>

#include "shoal/learn/factor_learner.h"

namespace shoal::learn {

class WholeFactorization final : public FactorLearner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be, among them biases, factors that may be negative and another
  // consistency than bsp, and for a number below zero. Step and batch mean nothing here.
  WholeFactorization(net::Transport& transport, Ratings ratings, const FactorizationOptions& options, const table::TablesOptions& tables = {});

  // Figures: "training RMSE" over all cells after the epoch; "held-out RMSE" over the cells that are held out, if there are any: they are 0 to who learns.
  Epoch learn(const std::function<void(double part)>& progressed) override;

 private:
  KeyRange user_squares() const { return {ratings_.items, ratings_.items + width_}; }
  KeyRange item_squares() const { return {ratings_.items + width_, ratings_.items + 2 * width_}; }
  KeyRange own_of(const KeyRange& rows) const { return {rows.begin + ratings_.member, rows.end, ratings_.members}; }
  void begin_anew(const KeyRange& rows);
  void add_squares_of_items();
  void take_items();
  void improve_users(const std::function<void(double part)>& progressed);
  std::vector<double> sum_up_users(const std::function<void(double part)>& progressed);
  double improve_items(const std::vector<double>& squares_of_users);
  template <class Each>
  void each_given(const std::function<void(double part)>& progressed, const Each& each);
  template <class Do>
  void together(const Do& what);
  std::vector<double> squares_at(const KeyRange& rows);

  table::Table<double> products_;
  std::vector<table::Key> touched_;   // items of own users, ascending: their rows are in rows_, and X^T P in products_of_touched_
  std::vector<float> own_items_;      // rows of Q, of this member's share
  std::vector<double> squares_;       // Q^T Q; none: before the first epoch
  std::vector<double> products_of_users_, products_of_touched_;  // X Q of own users; X^T P of them
  double squared_norm_ = 0;           // |X|^2 of own users
};

// The learner that options.missing asks for.
std::unique_ptr<FactorLearner> factor_learner(net::Transport& transport, Ratings ratings, const FactorizationOptions& options,
                                              const table::TablesOptions& tables = {});

}  // namespace shoal::learn
