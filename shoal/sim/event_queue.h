// What is scheduled, earliest first, and of one moment in the order in which it was scheduled. Exact: times compare as they are.
//
// A collective moves in step: thousands of events share a moment. They wait in one list, and only distinct moments are in a heap. The
// list that an event belongs to is found where the latest one with such a time was left; another moment may have taken that place, and
// then the same time has a second list, all of which comes behind the first. Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace shoal::sim {

template <class Event>
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  double when() const { return heap_.front().when; }             // of the first; not empty
  const Event& front() const { return nodes_[moments_[heap_.front().moment].first].event; }

  // Calls visit(k, event) for the k-th event behind the first, from 1, as far as they are of its moment and k <= most.
  template <class Visit>
  void behind_first(std::uint32_t most, Visit visit) const {
    if (heap_.empty()) return;
    std::uint32_t node = moments_[heap_.front().moment].first;
    for (std::uint32_t k = 1; k <= most && (node = nodes_[node].next) != kNone; ++k) visit(k, nodes_[node].event);
  }

  void push(double when, const Event& event) {
    when += 0.0;                                                  // -0 and 0 are one time
    const std::uint32_t node = take(nodes_, free_node_);
    nodes_[node] = {event, kNone};
    std::uint32_t& known = known_[place(when)];
    if (known != kNone && moments_[known].when == when) {
      nodes_[std::exchange(moments_[known].last, node)].next = node;
      return;
    }
    known = take(moments_, free_moment_);
    moments_[known] = {when, node, node};
    heap_.push_back({when, order_++, known});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void pop() {
    const std::uint32_t at = heap_.front().moment;
    Moment& moment = moments_[at];
    const std::uint32_t node = moment.first, next = nodes_[node].next;
    nodes_[node].next = std::exchange(free_node_, node);
    if (next != kNone) {
      moment.first = next;
      return;
    }
    if (std::uint32_t& known = known_[place(moment.when)]; known == at) known = kNone;
    moment.next = std::exchange(free_moment_, at);
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr int kPlaceBits = 12;
  struct Node {
    Event event;
    std::uint32_t next;                                           // of its moment, or of those that are free
  };
  struct Moment {
    double when;
    std::uint32_t first, last;
    std::uint32_t next = kNone;                                   // of those that are free
  };
  struct Entry {
    double when;
    std::uint64_t order;                                          // of moments
    std::uint32_t moment;
    bool operator>(const Entry& other) const { return when != other.when ? when > other.when : order > other.order; }
  };

  template <class Value>
  static std::uint32_t take(std::vector<Value>& values, std::uint32_t& free) {
    if (free != kNone) return std::exchange(free, values[free].next);
    values.emplace_back();
    return static_cast<std::uint32_t>(values.size() - 1);
  }
  static std::size_t place(double when) { return std::bit_cast<std::uint64_t>(when) * 0x9e3779b97f4a7c15 >> (64 - kPlaceBits); }
  static constexpr std::array<std::uint32_t, std::size_t{1} << kPlaceBits> nothing_known() {
    std::array<std::uint32_t, std::size_t{1} << kPlaceBits> all{};
    all.fill(kNone);
    return all;
  }

  std::vector<Entry> heap_;                                       // the earliest on top
  std::vector<Moment> moments_;
  std::vector<Node> nodes_;
  std::uint32_t free_moment_ = kNone, free_node_ = kNone;
  std::uint64_t order_ = 0;
  std::array<std::uint32_t, std::size_t{1} << kPlaceBits> known_ = nothing_known();  // moments, by place
};

}  // namespace shoal::sim
