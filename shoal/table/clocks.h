// The clocks of all workers, as one server knows them, and the clock that all have completed: the slowest. Who waits at a barrier holds nobody
// back, and some may be spared, so that a clock is complete without the last of them. Values; threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "shoal/table/consistency.h"
#include "shoal/table/packed.h"

namespace shoal::table {

class Clocks {
 public:
  explicit Clocks(std::uint32_t workers) : workers_(workers) {}

  Clock slowest() const { return slowest_; }
  Clock completed(std::uint32_t worker) const { return workers_[worker].completed; }
  // The clock of who is furthest of `count` workers from `first` on.
  Clock furthest(std::uint32_t first, std::uint32_t count) const;
  // By worker; kLastClock for those who wait at a barrier or are lost.
  std::vector<Clock> each() const;

  bool nobody_waits() const;
  void complete(std::uint32_t worker, Clock clock);
  // It waits at a barrier, at its clock.
  void arrive(std::uint32_t worker, Clock clock) { workers_[worker].arrived = clock; }
  bool all_arrived() const;              // but for those that are lost; false if all are
  // All go on, at the clock of who was furthest.
  void meet();
  // All of them are at that clock.
  void begin_at(Clock clock);
  // It is lost, and has completed that clock: nobody waits for it any more.
  void lose(std::uint32_t worker, Clock completed);
  // The next barrier leads to that clock at least.
  void meet_at_least_at(Clock clock) { floor_ = std::max(floor_, clock); }
  // Whether the slowest is further than at the last call, without the `spare` last; false while all wait or are lost.
  bool rise(unsigned spare);

  // All of it, for another server.
  void pack(Packed& packed) const;
  void unpack(Unpacked& packed);

 private:
  struct Worker {
    Clock completed = 0;                 // clocks
    std::optional<Clock> arrived;        // its clock at the barrier at which it waits
    bool lost = false;
  };
  std::vector<Worker> workers_;
  Clock slowest_ = 0, floor_ = 0;
};

}  // namespace shoal::table
