// Multiclass logistic regression by stochastic dual coordinate ascent over sparse rows, on all members of a job: no step size, and a gap that says how far
// from the optimum the model is at most (Shalev-Shwartz and Zhang, "Accelerated proximal SDCA", Math. Prog. 2016, sections 5.1 and 5.2).
//
//   primal  P(W) = 1/N sum over rows (x, y) of  -log softmax(W x)_y  +  l2/2 |W|^2       x with a last column of ones: the intercept decays, too
//   dual    D(p) = 1/N sum over rows of  H(p_i)  -  l2/2 |W(p)|^2,   W(p) = 1/(l2 N) sum of (e_y - p_i) x_i^T,   p_i a distribution over classes
//   gap     P(W(p)) - D(p) = 1/N sum over rows of  KL(p_i || softmax(W(p) x_i))  >= 0
//
// A row's p_i stays with the member that has the row; W is a shared matrix. A clock is a minibatch of all members together, in which each steps through
// its own rows one after another. Members that step side by side add up: each takes its own steps to weigh `members` times as much as they do, which keeps
// the dual from ever falling (Ma et al., ICML'15, "Adding vs. averaging in distributed primal-dual optimization": CoCoA+ with sigma' = K).
// Under bsp alone: a stale W would break that promise. Threads: one; every call by all members.
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

struct SdcaOptions {
  double l2 = 1e-5;         // above zero
  double gap = 1e-4;        // learnt enough when the gap is no larger
  std::size_t batch = 100;  // rows of all members in a clock
  std::uint64_t seed = 1;   // of the order
  Sharing sharing{};        // of W
};

class Sdca final : public Learner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be.
  Sdca(net::Transport& transport, LabelledRows rows, const SdcaOptions& options, const table::TablesOptions& tables = {});

  // Figures, all after the epoch: "objective", P(W); "duality gap"; "held-out log loss" and "held-out accuracy", if there are such rows.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  // "weights", a row for each column, and "intercept", as Linear's; "dual", for each row of the data what p_i gives to each wrong class.
  Tensors model() override;
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;
  std::string note() const override { return columns_->why(); }

 private:
  struct Sums {
    double loss = 0, gap = 0, decay = 0, correct = 0;
  };
  std::span<float> dual(std::uint32_t own) { return std::span(dual_).subspan(own * width_, width_); }
  double scores_of(const data::SparseRow& row);
  void distribution_of(std::uint32_t own);
  void step_by(std::span<const std::uint32_t> numbers);
  void add_to_values(const data::SparseRow& row, double factor);
  void add_to(factor::Outer<double>& changes, const data::SparseRow& row) const;
  void sum_up();
  Sums sums_over(const data::SparseSlice& rows, bool own);

  const SdcaOptions options_;
  const LabelledRows rows_;
  const std::size_t classes_, width_;
  const double mass_;                        // l2 N
  table::Tables tables_;
  table::Worker worker_;
  const std::unique_ptr<SharedMatrix<double>> columns_;  // W; key `columns` is the intercept
  table::Table<float> all_duals_;            // rows of dual_ on their way into a model and out of one
  SharedSums sums_;
  std::vector<float> dual_;                  // of own rows, row after row: p_i but for the row's own class, whose place is 0
  TouchedColumns touched_;
  std::vector<double> values_;               // rows of W
  std::vector<double> scores_, likely_;      // of the row that is looked at: W x less their largest, and softmax of it
  std::vector<double> p_, change_;           // of that row; by how much e_y - p changes
  unsigned epochs_ = 0;                      // done
  double waited_ = 0;
};

}  // namespace shoal::learn
