// Groups of things that are alike, by average linkage (Sokal and Michener, A statistical method for evaluating systematic
// relationships, 1958): the two likest groups are joined until one is left.
#pragma once

#include <cstddef>
#include <vector>

namespace shoal::topo {

class Likeness {
 public:
  explicit Likeness(std::size_t size) : size_(size), value_(size * size) {}
  std::size_t size() const { return size_; }
  // One direction; the likeness of two is the geometric mean of both. value > 0.
  void set(std::size_t from, std::size_t to, double value) { value_[from * size_ + to] = value; }
  double of(std::size_t a, std::size_t b) const;

 private:
  std::size_t size_;
  std::vector<double> value_;
};

// Partitions of all into groups, the coarsest first: one before each join that is `gap` times less like than the join before it. None
// where there is no such gap. Groups and members ascend. O(size^3).
using Partition = std::vector<std::vector<std::size_t>>;
std::vector<Partition> partitions(const Likeness& likeness, double gap);

}  // namespace shoal::topo
