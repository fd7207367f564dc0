// Distance metric learning by minibatch stochastic gradient descent on pairs, on all members of a job (Xing et al., NIPS'02, in the form with hinges of Xie et al.,
// UAI'16, section 2): a map L of few dimensions, in which samples of one class are near each other and those of two are at least 1 apart.
//
//   minimise  mean over pairs (x, y) of   |L (x - y)|^2                   where they are of one class
//                                         w max(0, 1 - |L (x - y)|^2)     where they are of two
//
// L is in a shared table, a row for each column of the data. In each epoch each sample meets one of its class and one of another, drawn among those of its member; so
// another number of members takes other steps. A clock is a minibatch of all members' samples. Threads: one; every call by all members.
#pragma once

#include <span>

#include "shoal/learn/labelled_rows.h"
#include "shoal/learn/learner.h"
#include "shoal/learn/metric_map.h"
#include "shoal/learn/minibatch.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct MetricOptions {
  std::uint32_t dimensions = 32;
  StepSize step{.sigma = 1, .decreasing = true};  // in units of 1 / how fast the gradient changes at most, which the data's first rows tell
  double apart = 1;          // w
  std::size_t batch = 100;   // samples of all members in a clock
  std::uint64_t seed = 1;    // of the first map, the order and the pairs
  table::Consistency consistency = table::Bsp{};
};

class Metric final : public Learner {
 public:
  static constexpr std::size_t kNeighbours = 5;

  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be.
  Metric(net::Transport& transport, LabelledRows rows, const MetricOptions& options, const table::TablesOptions& tables = {});

  // Figures: "training loss", of each pair before its step; after the epoch "held-out neighbours", the share of such rows whose class most of the five nearest of
  // LabelledRows::first have, if there are any.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  Tensors model() override;  // "map", a row for each column
  unsigned restore(unsigned epochs, const Tensors& model) override;

 private:
  struct Pair {
    std::uint32_t one, other;  // places in own rows
  };
  void begin_map();
  void draw_pairs(std::span<const std::uint32_t> numbers);
  double step_by(double step);
  double rightly_voted();

  const MetricOptions options_;
  const LabelledRows rows_;
  double unit_ = 1;                                  // of steps
  std::vector<std::vector<std::uint32_t>> of_class_;  // own rows
  table::Tables tables_;
  table::Worker worker_;
  table::Table<float> columns_;                      // L
  SharedSums sums_;
  TouchedColumns touched_;
  std::vector<Pair> pairs_;                          // of the minibatch
  std::vector<float> values_, changes_;              // rows of the table, of touched columns
  unsigned epochs_ = 0;                              // done
  double waited_ = 0;
};

}  // namespace shoal::learn
