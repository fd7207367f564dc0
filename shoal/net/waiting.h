// Waits for what the loop does, with patience: how rooms that live on a transport block their callers. Values; any thread but the loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "shoal/core/time.h"
#include "shoal/net/transport.h"

namespace shoal::net {

// Counts what arrives for somebody: whoever waits for it looks again.
class Arrivals {
 public:
  std::uint64_t arrivals() const { return arrivals_.load(std::memory_order_acquire); }

 protected:
  ~Arrivals() = default;
  std::atomic<std::uint64_t> arrivals_{0};
};

class Waiting {
 public:
  // failure: why waiting is in vain, beside what ends the transport.
  Waiting(Transport& transport, Nanoseconds patience, std::function<Failure()> failure)
      : transport_(&transport), patience_(patience), failure_(std::move(failure)) {}
  // Until ready() is true; it is looked at when something arrived for `whom`. Returns how long that took; 0 if it was true at once. what, of: for
  // the error. Throws Error{peer_lost, timeout}.
  template <class Ready>
  Nanoseconds until(const Ready& ready, const Arrivals& whom, const char* what, const std::string& of) const {
    const std::uint64_t seen = whom.arrivals();
    return ready() ? Nanoseconds::zero() : wait(ready, whom, seen, what, of);
  }

 private:
  Nanoseconds wait(const std::function<bool()>& ready, const Arrivals& whom, std::uint64_t seen, const char* what, const std::string& of) const;

  Transport* transport_;
  Nanoseconds patience_;
  std::function<Failure()> failure_;
};

}  // namespace shoal::net
