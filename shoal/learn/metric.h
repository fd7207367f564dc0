// Distance metric learning by minibatch stochastic gradient descent, on all members of a job: a map L of few dimensions in which a sample is nearer
// to its own class than to others. Near samples of its class pull it, those of others that are not farther away by a margin of 1 push it (Weinberger
// and Saul, JMLR 10, 2009, section 3; in place of all pairs of Xing et al., NIPS'02, whose classes it would draw into one place each):
//
//   minimise  mean over samples x of   |L (x - y)|^2 + w max(0, 1 + |L (x - y)|^2 - |L (x - z)|^2)
//
// y and z being rows near x of its own class and of another (partners.h). A step is a sum of products of two vectors, L (x - y) and x - y, or of z
// (Xie et al., UAI'16, section 2). L begins with the directions in which near samples of two classes differ most, or with all columns where there are
// enough dimensions, as long that the mean of |L (x - z)|^2 is 5.
//
// L is in a shared table, a row for each column of the data. In each epoch each sample has partners among those of its member, as near as the map of
// the epoch's beginning has them; so another number of members takes other steps. A clock is a minibatch of all members' samples. Threads: one; every
// call by all members.
#pragma once

#include <span>

#include "shoal/learn/labelled_rows.h"
#include "shoal/learn/learner.h"
#include "shoal/learn/metric_map.h"
#include "shoal/learn/minibatch.h"
#include "shoal/learn/partners.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct MetricOptions {
  std::uint32_t dimensions = 32;
  StepSize step{.sigma = 1, .decreasing = true};  // in units of 1 / how fast the gradient changes, about, which the data's first rows tell
  double apart = 10;         // w
  std::size_t batch = 100;   // samples of all members in a clock
  std::uint64_t seed = 1;    // of the first map, the order and the partners
  table::Consistency consistency = table::Bsp{};
};

class Metric final : public Learner {
 public:
  static constexpr std::size_t kNeighbours = 3;

  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be.
  Metric(net::Transport& transport, LabelledRows rows, const MetricOptions& options, const table::TablesOptions& tables = {});

  // Figures: "training loss", of each sample before its step; after the epoch "held-out neighbours", the share of such rows whose class most of the
  // three nearest of LabelledRows::first have, if there are any.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  Tensors model() override;  // "map", a row for each column
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;

 private:
  void begin_map();
  void find_partners(std::span<const std::uint32_t> samples);
  double step_by(double step);
  MetricMap map();
  double rightly_voted(const MetricMap& map);

  const MetricOptions options_;
  const LabelledRows rows_;
  double unit_ = 1;                                  // of steps
  const Partners partners_;
  table::Tables tables_;
  table::Worker worker_;
  table::Table<float> columns_;                      // L
  SharedSums sums_;
  TouchedColumns touched_;
  std::vector<float> points_;                        // of own rows, when the epoch began
  struct Triple {
    std::uint32_t sample, alike, other;              // places in own rows
  };
  std::vector<Triple> triples_;                      // of the minibatch
  std::vector<float> values_, changes_;              // rows of the table, of touched columns
  unsigned epochs_ = 0;                              // done
  double waited_ = 0;
};

}  // namespace shoal::learn
