// Counts the trains of frames (transport.h) of one direction between two members. Threads: frame() on the loop, so_far() any.
#pragma once

#include <atomic>
#include <cstdint>

#include "shoal/net/transport.h"

namespace shoal::net {

struct LinkBytes {  // payload that passed over all bulk connections of a member
  std::uint64_t sent = 0, received = 0;
};

class TrainCounter {
 public:
  // shortest: time between two such frames that says something. In less other links' bytes come that had lain in their buffers before.
  explicit TrainCounter(Nanoseconds shortest) : shortest_(shortest) {}

  // A frame has passed, `all` being the bytes of all links then, its own included. follows: it was ready when the one before it had left.
  // waited: since the one before it the kernel's buffer was found full (of what leaves) or empty (of what comes). Only between two frames that waited is it the
  // network that took the time: what lies in a buffer passes at the memory's speed, and counts with the next frame that waited.
  void frame(Instant now, std::uint64_t bytes, bool follows, bool waited, std::uint64_t all) {
    if (!follows) at_ = {};
    pending_ = at_ == Instant{} ? 0 : pending_ + bytes;
    if (!waited || (at_ != Instant{} && now - at_ < shortest_)) return;
    if (at_ != Instant{}) {
      bytes_.fetch_add(pending_, std::memory_order_relaxed);
      beside_.fetch_add(all - all_, std::memory_order_relaxed);
      nanoseconds_.fetch_add((now - at_).count(), std::memory_order_relaxed);
    }
    at_ = now;
    all_ = all;
    pending_ = 0;
  }
  Trains so_far() const { return {bytes_, beside_, static_cast<double>(nanoseconds_.load()) * 1e-9}; }

 private:
  const Nanoseconds shortest_;
  std::atomic<std::uint64_t> bytes_{0}, beside_{0};
  std::atomic<std::int64_t> nanoseconds_{0};
  Instant at_{};            // of this train's last frame that waited
  std::uint64_t all_ = 0;   // then
  std::uint64_t pending_ = 0;  // bytes since
};

}  // namespace shoal::net
