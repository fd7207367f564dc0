// Weights that change one by one, to draw from: the leaves of a binary tree in which each node is the sum of its two (Yu et al., WWW 2015, call it an
// F+tree). A change and a draw take as many steps as the tree is high; sums are always those of the leaves, so that nothing drifts. 16 bytes a weight.
// Threads: one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn::topic {

class WeightTree {
 public:
  explicit WeightTree(std::size_t size) : leaves_(std::bit_ceil(size)), nodes_(2 * leaves_) {}

  void set_all(std::span<const double> weights) {  // as many as there are
    for (std::size_t i = 0; i < weights.size(); ++i) nodes_[leaves_ + i] = weights[i];
    for (std::size_t node = leaves_; node-- > 1;) nodes_[node] = nodes_[2 * node] + nodes_[2 * node + 1];
  }
  void set(std::size_t i, double weight) {
    std::size_t node = leaves_ + i;
    nodes_[node] = weight;
    while ((node /= 2) > 0) nodes_[node] = nodes_[2 * node] + nodes_[2 * node + 1];
  }
  double operator[](std::size_t i) const { return nodes_[leaves_ + i]; }
  double sum() const { return nodes_[1]; }
  // Where u in [0, sum()) falls; weights of 0 are not drawn.
  std::size_t at(double u) const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (u < nodes_[node] || nodes_[node + 1] <= 0) continue;
      u -= nodes_[node++];
    }
    return node - leaves_;
  }
  std::size_t memory() const { return nodes_.size() * sizeof(double); }  // bytes

 private:
  std::size_t leaves_;
  std::vector<double> nodes_;  // 1 is the root, node i's two are 2 i and 2 i + 1
};

}  // namespace shoal::learn::topic
