// Which stream's frame leaves next: strict order by (class, value, iteration, first come first served), except that
// the background class is guaranteed 1/16 of the bytes while it waits. Pure policy: no time, no bytes, no locks.
// `Item` is a stream of its owner, who removes it before it dies.
#pragma once

#include <cstdint>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "shoal/net/transport.h"

namespace shoal::net {

struct Order {
  Priority priority;
  std::uint64_t arrival = 0;  // breaks ties; unique
  auto key() const { return std::tuple(priority.cls, priority.value, priority.iteration, arrival); }
  bool operator<(const Order& other) const { return key() < other.key(); }
};

template <typename Item>
class SendQueue {
 public:
  static constexpr std::uint64_t kBackgroundShare = 16;  // one byte in so many

  void insert(const Order& order, Item* item) { waiting_.emplace(order, item); }
  void erase(const Order& order, Item* item) { waiting_.erase({order, item}); }
  bool empty() const { return waiting_.empty(); }

  // Whose frame is next; nullptr if nobody waits. The item stays in the queue.
  Item* next() const {
    if (waiting_.empty()) return nullptr;
    const auto background = first_background();
    if (owed_ >= kMinOwed && background != waiting_.end()) return background->second;
    return waiting_.begin()->second;
  }
  // Tells what next()'s item sent.
  void sent(Class cls, std::uint64_t bytes) {
    if (cls == Class::background) {
      owed_ -= static_cast<std::int64_t>(bytes);
    } else if (first_background() != waiting_.end()) {
      owed_ += static_cast<std::int64_t>(bytes / (kBackgroundShare - 1));
    } else {
      owed_ = 0;
    }
  }

 private:
  static constexpr std::int64_t kMinOwed = 16 * 1024;  // the smallest frame
  using Waiting = std::set<std::pair<Order, Item*>>;
  typename Waiting::const_iterator first_background() const {
    const auto last = waiting_.empty() ? waiting_.end() : std::prev(waiting_.end());
    if (last == waiting_.end() || last->first.priority.cls != Class::background) return waiting_.end();
    return waiting_.lower_bound({Order{{Class::background, 0, 0}, 0}, nullptr});
  }

  Waiting waiting_;
  std::int64_t owed_ = 0;  // bytes that background may send ahead of its turn; below 0: it has sent more than its share
};

}  // namespace shoal::net
