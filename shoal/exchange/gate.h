// Who waits for which version: a gate stands between the loop, which puts a tensor's mean in place, and the caller, who may not
// read it before. Every unit of tensors has one, which opens for version v when the mean of its v-th iteration has arrived.
//
//   loop                                   caller
//   memory = mean;                         transport.drive([&] { return gate.open_for(v); }, deadline);
//   gate.open(v);                          read memory
//
// Nobody closes a gate. Who waits says for which version, so that one iteration may still wait at the gates of deep layers
// while the next already asks the shallow ones for theirs, and no flag has to be put back in between.
//
// Invariants: 1. The version never falls. 2. Whoever sees a gate open for v sees the memory as it was at open(v).
// Threads: open() on the transport's loop; the others on any thread.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace shoal::exchange {

class Gate {
 public:
  using Version = std::uint64_t;  // iterations whose mean has arrived; 0: none yet

  explicit Gate(Version arrived = 0) : arrived_(arrived) {}

  void open(Version version) {
    assert(version >= arrived_.load(std::memory_order_relaxed));
    arrived_.store(version, std::memory_order_release);
  }
  bool open_for(Version version) const { return arrived_.load(std::memory_order_acquire) >= version; }

 private:
  std::atomic<Version> arrived_;
};

}  // namespace shoal::exchange
