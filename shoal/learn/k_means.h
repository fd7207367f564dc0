// K-means by Lloyd's iteration, on all members of a job: centers that lie as near to the samples as iteration brings them.
//
//   minimise  sum over samples x of  min over clusters j of |x - c_j|^2
//
// First centers are k-means++'s (Arthur and Vassilvitskii, SODA'07): each next one is a sample, drawn in proportion to its squared distance from those that
// there are. The draw is a race that all samples run, each with a random number of its own: who wins does not depend on where a sample lies.
// An epoch is one iteration. The sums of the clusters' samples are integers in a shared table, values in fixed point; samples that go over to another cluster change
// them. Integers add up exactly in any order: centers have the same bits on any number of members.
// A cluster that has lost its last sample takes the one that is farthest from its center. Threads: one; every call by all members.
#pragma once

#include <optional>
#include <span>

#include "shoal/learn/centers.h"
#include "shoal/learn/labelled_rows.h"
#include "shoal/learn/learner.h"
#include "shoal/learn/minibatch.h"
#include "shoal/learn/shared_sums.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct KMeansOptions {
  std::uint32_t clusters = 10;
  std::uint64_t seed = 1;
};

class KMeans final : public Learner {
 public:
  // The transport outlives it. Throws Error{invalid_argument} for options that cannot be, such as more clusters than samples.
  KMeans(net::Transport& transport, LabelledRows rows, const KMeansOptions& options, const table::TablesOptions& tables = {});

  // Figures: "mean squared distance" of the samples before the centers moved, "shift", the root of the sum of squares by which they did, and "held-out mean squared
  // distance" after it, if there are such samples. Converged when they stay. Throws Error{invalid_argument} where there are fewer different samples than clusters.
  Epoch learn(const std::function<void(double part)>& progressed) override;
  Tensors model() override;  // "centers", a row for each cluster
  void begin_with(const Tensors& first) override;
  unsigned restore(unsigned epochs, const Tensors& model) override;

 private:
  struct Offer {                         // of a member to a choice of all
    double weight = 0;                   // above zero; the largest is chosen
    std::uint32_t number = 0;            // of the sample among those of all members; of equal weights the smallest is chosen
    std::optional<std::uint32_t> own{};  // its place here, where it is this member's
  };
  std::optional<Offer> choose(const std::optional<Offer>& own);
  void begin_centers();
  void move(std::uint32_t sample, std::uint32_t cluster);
  double assign(const std::function<void(double part)>& progressed);
  void fill_empty();
  double renew();

  const KMeansOptions options_;
  const LabelledRows rows_;
  const int shift_;                              // a value is an integer times 2^-shift
  table::Tables tables_;
  table::Worker worker_;
  table::Table<std::int64_t> cluster_sums_;      // of a column, one a cluster; key `columns`: how many samples the clusters have
  table::Table<float> starts_;                   // the sample that first is a cluster's center
  SharedSums sums_, offers_;
  Centers centers_;
  std::vector<std::uint32_t> cluster_;           // of own samples; `clusters` where it is in none yet
  std::vector<double> distance_;                 // squared, to its center
  TouchedColumns touched_;
  std::vector<std::int64_t> changes_;            // of the rows of touched columns
  bool has_first_ = false;                       // centers that were given
  unsigned epochs_ = 0;                          // done
  double waited_ = 0;
};

}  // namespace shoal::learn
