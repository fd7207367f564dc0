// The servers that hold one shard, and what they have told a member. What is written goes to all of them, and is confirmed when all that live have
// confirmed it; the first that lives answers who reads. Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shoal/table/message.h"

namespace shoal::table {

class Holders {
 public:
  explicit Holders(std::size_t replicas) : hosts_(replicas) {}

  void hear(std::size_t replica, const Header& header);  // what tells a clock
  void hear_each(std::size_t replica, std::span<const Key> clocks) { hosts_[replica].each.assign(clocks.begin(), clocks.end()); }
  void leaves(std::size_t replica) { hosts_[replica].gone = true; }
  // Whether another one is first now. The last stays: nobody else confirms what it has not.
  bool loses(std::size_t replica);

  std::size_t first() const { return first_; }
  bool gone() const { return hosts_[first_].gone; }      // the first has left
  bool gone_before(std::uint64_t flushes) const;         // one has left without having told of so many barriers
  Clock announced() const { return least(&Host::announced); }         // by all
  std::uint64_t counted() const { return least(&Host::counted); }     // parts up to this are in the rows of all
  std::uint64_t flushes() const { return least(&Host::flushes); }     // barriers that all have told of
  std::uint64_t most_flushes() const;                    // that one of them has told of
  std::uint64_t first_flushes() const { return hosts_[first_].flushes; }
  const std::vector<Clock>& each() const { return hosts_[first_].each; }  // worker's clock; none: it has not told
  std::uint64_t dropped() const { return hosts_[first_].dropped; }

  // Keys that are written out of time, until all have confirmed them.
  void assigns(std::vector<Key> keys) { assigning_.push_back(std::move(keys)); }
  std::size_t assigning() const { return assigning_.size(); }
  std::optional<std::vector<Key>> take_assigned();       // the next that are confirmed

 private:
  struct Host {
    Clock announced = 0;
    std::uint64_t counted = 0, flushes = 0, assigned = 0, dropped = 0;
    std::vector<Clock> each;
    bool gone = false, lost = false;
  };
  template <class Number>                                // of those that live
  Number least(Number Host::*member) const;

  std::vector<Host> hosts_;
  std::size_t first_ = 0;
  std::deque<std::vector<Key>> assigning_;
  std::uint64_t assigned_ = 0;                           // taken
};

}  // namespace shoal::table
