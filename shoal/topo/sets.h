// Disjoint sets of nodes that grow together (union by path halving).
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "shoal/topo/topology.h"

namespace shoal::topo {

class Sets {
 public:
  explicit Sets(std::size_t nodes) : parent_(nodes) { std::iota(parent_.begin(), parent_.end(), Node{0}); }

  Node find(Node node) {  // one of its set, the same for all of them
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  bool join(Node a, Node b) {  // false: they were in one set
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
    return a != b;
  }

 private:
  std::vector<Node> parent_;
};

}  // namespace shoal::topo
