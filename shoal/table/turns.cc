#include "shoal/table/turns.h"

namespace shoal::table {

// In a replay it looks when it did so with an effect; between that and what the worker did then, it finds what it found.
bool Turns::looks(Order::Source worker, const std::function<Look()>& look) {
  const Order::Event event{worker, static_cast<std::uint8_t>(Step::look)};
  Look seen{};
  {
    const std::lock_guard lock(mutex_);
    const auto next = order_->next();
    if (next && next->source != worker) return false;
    seen = look();
    if (seen.effect) order_->happens(event);
  }
  if (seen.effect && moved_) moved_();
  return seen.found;
}

}  // namespace shoal::table
