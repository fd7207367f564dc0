// Multiclass logistic regression by minibatch stochastic gradient descent over sparse rows, on all members of a job.
//
//   minimise  1/N sum over rows (x, y) of  -log softmax(W x + b)_y  +  l2/2 |W|^2          (of two classes: the logistic function of one row of W)
//
// W is a shared matrix, a row for each column of the data, because a minibatch touches few columns, and changes by an outer product for each row.
// Its decay is a scalar: W = c V, so that a step changes the rows of V whose columns it has seen, and no others. A clock is a minibatch of all
// members together, of which each has the rows that it holds: whatever the number of members, steps are the same but for the rounding of sums (under
// bsp).
// Threads: one; every call by all members.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "shoal/learn/labelled_rows.h"
#include "shoal/learn/learner.h"
#include "shoal/learn/minibatch.h"
#include "shoal/learn/shared_matrix.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct LinearOptions {
  StepSize step{.sigma = 2, .decreasing = true};  // in units of 1 / smoothness(), so that it suits any scale of the data
  double l2 = 1e-5;
  std::size_t batch = 100;   // rows of all members in a clock
  std::uint64_t seed = 1;    // of the order
  table::Consistency consistency = table::Bsp{};
  Sharing sharing{};         // of W
  table::Encoding encoding = table::Encoding::none;  // of rows between members
};

// Numbers that a column has: one a class; of two classes, one.
inline std::size_t width_for(std::size_t classes) { return classes == 2 ? 1 : classes; }

// scores (width_for(classes) of them) become probabilities, one a class, in `probabilities`.
void softmax(std::span<const double> scores, std::span<double> probabilities);

// How fast the gradient of a minibatch's mean loss by W can change, about: s (lambda + R (1 - 1/batch) / batch), lambda the largest eigenvalue of the rows'
// mean x x^T, R the mean of |x|^2, s 1/4 for two classes and else 1/2 (Gower et al., ICML'19, "SGD: general analysis and improved rates",
// proposition 3.8, with the mean in place of the largest R). The intercept's is s.
double smoothness(const data::SparseRows& rows, std::size_t classes, std::size_t batch);

class Linear final : public Learner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be.
  Linear(net::Transport& transport, LabelledRows rows, const LinearOptions& options, const table::TablesOptions& tables = {});

  // Figures: "training log loss", of each row before its step; "held-out log loss" and "held-out accuracy" after the epoch, if there are such rows.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  Tensors model() override;  // "weights", a row for each column, and "intercept"
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;
  std::string note() const override { return columns_->why(); }

 private:
  struct Sums {
    double loss = 0, correct = 0;
  };
  Sums look_at(const data::SparseRow& row, std::vector<double>& probabilities);
  double step_by(std::span<const std::uint32_t> numbers, double step, std::size_t batch);
  Sums sums_held_out();
  void fold();

  const LinearOptions options_;
  const LabelledRows rows_;
  const std::size_t classes_, width_;
  const double smoothness_;
  table::Tables tables_;
  table::Worker worker_;
  const std::unique_ptr<SharedMatrix<float>> columns_;  // V; key `columns` is the intercept, which does not decay
  SharedSums sums_;
  double scale_ = 1;                           // c
  TouchedColumns touched_;                     // by those rows that were read for
  std::vector<float> values_;                  // their rows of V, the intercept last
  unsigned epochs_ = 0;                        // done
  double waited_ = 0;
};

}  // namespace shoal::learn
