// The clocks of all workers, as one server knows them, and the clock that all have completed: the slowest. Who waits at a barrier holds nobody
// back, and some may be spared, so that a clock is complete without the last of them. Values; threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shoal/table/consistency.h"

namespace shoal::table {

class Clocks {
 public:
  explicit Clocks(std::uint32_t workers) : workers_(workers) {}

  Clock slowest() const { return slowest_; }
  // The clock of who is furthest of `count` workers from `first` on.
  Clock furthest(std::uint32_t first, std::uint32_t count) const;
  // By worker; kLastClock for those who wait at a barrier.
  std::vector<Clock> each() const;

  bool nobody_waits() const;
  void complete(std::uint32_t worker, Clock clock);
  // It waits at a barrier, at its clock. Whether all do.
  bool arrive(std::uint32_t worker, Clock clock);
  // All go on, at the clock of who was furthest.
  void meet();
  // Whether the slowest is further than at the last call, without the `spare` last; not while all wait.
  bool rise(unsigned spare);

 private:
  struct Worker {
    Clock completed = 0;                 // clocks
    std::optional<Clock> arrived;        // its clock at the barrier at which it waits
  };
  std::vector<Worker> workers_;
  Clock slowest_ = 0;
};

}  // namespace shoal::table
