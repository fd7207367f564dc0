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
  // A frame has passed, `all` being the bytes of all links then, its own included. follows: it was ready when the one before it had left.
  void frame(Instant now, std::uint64_t bytes, bool follows, std::uint64_t all) {
    if (follows && at_ != Instant{}) {
      bytes_.fetch_add(bytes, std::memory_order_relaxed);
      beside_.fetch_add(all - all_, std::memory_order_relaxed);
      nanoseconds_.fetch_add((now - at_).count(), std::memory_order_relaxed);
    }
    at_ = now;
    all_ = all;
  }
  Trains so_far() const { return {bytes_, beside_, static_cast<double>(nanoseconds_.load()) * 1e-9}; }

 private:
  std::atomic<std::uint64_t> bytes_{0}, beside_{0};
  std::atomic<std::int64_t> nanoseconds_{0};
  Instant at_{};            // of the last frame
  std::uint64_t all_ = 0;   // then
};

}  // namespace shoal::net
