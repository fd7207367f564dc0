// The order in which one member's copies of a table meet messages and its workers' steps: recorded, or kept to (order.h). Workers wait for their
// turns; messages that come early are held.
//
// Threads: workers, each for itself, and the loop (comes(), go_on()).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "shoal/table/order.h"

namespace shoal::table {

// What a worker does to its member's copies, or through them.
enum class Step : std::uint8_t { look = 1, ask, read, add, assign, put, reset, forget, rule, tick, flush, go_on_from, question };

class Turns {
 public:
  // moved: another's turn may have come: who waits for one is to look, and the loop to go_on(). None where nobody ever waits.
  Turns(std::unique_ptr<Order> order, std::function<void()> moved) : order_(std::move(order)), in_order_(*order_), moved_(std::move(moved)) {}

  bool is_turn(Order::Source worker) const {
    const std::lock_guard lock(mutex_);
    const auto next = order_->next();
    return !next || next->source == worker;
  }
  // While it lives nothing else happens here.
  class Turn {
   public:
    Turn(Turns& turns, Order::Event event) : turns_(turns), lock_(turns.mutex_) { turns_.order_->happens(event); }
    ~Turn() {
      lock_.unlock();
      if (turns_.moved_) turns_.moved_();
    }
    Turn(const Turn&) = delete;

   private:
    Turns& turns_;
    std::unique_lock<std::mutex> lock_;
  };
  Turn turn(Order::Source worker, Step step) { return {*this, {worker, static_cast<std::uint8_t>(step)}}; }
  // A worker that waits for rows looks whether they are there, as often as it likes; only a look that has an effect is an event.
  struct Look {
    bool found, effect;
  };
  bool looks(Order::Source worker, const std::function<Look()>& look);

  void comes(Order::Event event, InOrder::Act act) {
    const std::lock_guard lock(mutex_);
    in_order_.comes(event, std::move(act));
  }
  void go_on() {
    const std::lock_guard lock(mutex_);
    in_order_.go_on();
  }
  Instant now(Instant here) { return order_->now(here); }  // within a turn, or what comes

 private:
  mutable std::mutex mutex_;                  // guards all below; held while anything happens here
  std::unique_ptr<Order> order_;
  InOrder in_order_;
  const std::function<void()> moved_;
};

}  // namespace shoal::table
