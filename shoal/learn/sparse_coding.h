// Dictionary learning on all members of a job: atoms of which few together make up each sample (Mairal et al., "Online dictionary learning for sparse coding",
// ICML'09; with codes below zero refused, a sparse non-negative factorization).
//
//   minimise  1/N sum over samples x_i of  1/2 |x_i - sum_k a_ik d_k|^2 + l1 |a_i|_1,   |d_k| <= 1
//
// A sample's code stays with the member that has the sample. Shared are the sums A of a a^T and B of x a^T, in a table: all members make the same atoms of them.
// A clock is a minibatch of all members together: atoms are improved, the minibatch's samples coded anew, and what their old codes had in the sums is replaced (section 3.4
// there). Steps have no size, and are the same on any number of members but for the rounding of sums. Under bsp. Threads: one; every call by all members.
#pragma once

#include <span>

#include "shoal/learn/dictionary.h"
#include "shoal/learn/labelled_rows.h"
#include "shoal/learn/learner.h"
#include "shoal/learn/minibatch.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct SparseCodingOptions {
  DictionaryForm form{};
  std::size_t batch = 500;  // samples of all members in a clock
  std::uint64_t seed = 1;   // of the first atoms and the order
};

class SparseCoding final : public Learner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be.
  SparseCoding(net::Transport& transport, LabelledRows rows, const SparseCodingOptions& options, const table::TablesOptions& tables = {});

  // Figures: "objective", of each sample when it was coded; "codes not zero", a share; "held-out objective" after the epoch, if there are such samples.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  Tensors model() override;  // "atoms", and for each row of the data its "codes"
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;

 private:
  std::span<float> code(std::uint32_t own) { return std::span(codes_).subspan(own * atoms_, atoms_); }
  void begin_atoms();
  void bring_into_ball(Tensor& atoms) const;
  void replace_unused();
  void improve_atoms();
  double code_anew(std::span<const std::uint32_t> numbers);
  void add_changes(std::span<const std::uint32_t> numbers, std::span<const float> before);
  void sum_up();

  const SparseCodingOptions options_;
  const LabelledRows rows_;
  const std::size_t atoms_;
  table::Tables tables_;
  table::Worker worker_;
  table::Table<double> codes_sums_;      // B, a row for each column; behind them A, a row for each atom
  table::Table<float> all_codes_;        // rows of codes_ on their way into a model and out of one
  SharedSums sums_;
  Dictionary dictionary_;
  std::vector<float> codes_;             // of own rows, row after row
  TouchedColumns touched_;
  std::vector<double> known_sums_;       // all rows of codes_sums_, as they were read last
  unsigned epochs_ = 0;                  // done
  double waited_ = 0;
};

}  // namespace shoal::learn
