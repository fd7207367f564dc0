// Centers of clusters, and which of them a sample is nearest to. Distances are sums in one order, whoever takes them: the same bits on all members. Values;
// threads: any that only read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/data/sparse_rows.h"
#include "shoal/learn/model_folder.h"

namespace shoal::learn {

class Centers {
 public:
  struct Nearest {
    std::uint32_t cluster = 0;  // of several at the same distance, the first
    double squared_distance = 0;
  };
  Centers(std::uint32_t clusters, std::uint32_t columns) : clusters_(clusters), columns_(columns), values_(std::size_t{clusters} * columns), norms_(clusters) {}
  // Of a model of shoal cluster-points. Throws Error{invalid_argument} for a folder whose files are none, or do not fit each other.
  explicit Centers(const ModelFolder& folder);

  std::uint32_t clusters() const { return clusters_; }
  std::uint32_t columns() const { return columns_; }
  // One number a cluster, of this column. Whoever sets some calls changed() before the next nearest().
  std::span<float> column(std::uint32_t column) { return std::span(values_).subspan(std::size_t{column} * clusters_, clusters_); }
  void changed();
  Nearest nearest(const data::SparseRow& sample) const;  // columns that the centers do not have are 0 in them

  Tensor tensor() const;  // a row for each cluster
  void set(const Tensor& tensor);

 private:
  std::uint32_t clusters_, columns_;
  std::vector<float> values_;  // column after column: a sample has few
  std::vector<double> norms_;  // squared
};

}  // namespace shoal::learn
