// The operations that a member has ended, so that bytes which still come under them are dropped. Bounded: the oldest are
// forgotten first. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace shoal::net {

class ClosedOperations {
 public:
  explicit ClosedOperations(std::size_t remembered) : remembered_(remembered) {}

  void add(std::uint64_t operation) {
    if (closed_.insert(operation).second) order_.push_back(operation);
    if (order_.size() <= remembered_) return;
    closed_.erase(order_.front());
    order_.pop_front();
  }
  bool contains(std::uint64_t operation) const { return closed_.contains(operation); }

 private:
  const std::size_t remembered_;
  std::unordered_set<std::uint64_t> closed_;
  std::deque<std::uint64_t> order_;  // oldest first
};

}  // namespace shoal::net
