// Gates of policies that look further than the slowest worker's clock.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/table/consistency.h"

namespace shoal::table {

// Dynamic SSP (Zhao et al., "Dynamic stale synchronous parallel distributed training", ICDCS'19): how stale reads may be is chosen at each
// tick. A worker that is ahead of the slowest by more than the least goes on for as many clocks as end nearest to a tick of the slowest, both
// predicted by their last intervals, so that it then waits least; it never gets further ahead than the most. Where no clock more would do it
// waits for one tick of the slowest. Values; threads: one at a time.
class DynamicGate {
 public:
  explicit DynamicGate(std::size_t workers) : workers_(workers) {}
  // The slowest worker has completed that many clocks.
  void rises(Clock slowest, Instant now);
  // That worker of this member has: from now on its reads may be staleness() old.
  void ticks(std::size_t worker, Clock clock, const Dssp& policy, Instant now);
  Clock staleness(std::size_t worker) const { return workers_[worker].staleness; }

 private:
  struct Pace {
    Instant last{};
    Nanoseconds interval{0};             // of one clock; 0: not known
  };
  struct Worker {
    Pace pace;
    Clock granted = 0, staleness = 0;    // granted: it goes on until this clock
  };
  Clock slowest_ = 0;
  Pace of_slowest_;
  std::vector<Worker> workers_;
};

// How many clocks of `own` length to add, at most `room`, so that their end is nearest to a tick of who ticks every `slow` and did so `since`
// ago; the fewest of equally good ones.
Clock clocks_to_add(Clock room, Nanoseconds own, Nanoseconds slow, Nanoseconds since);

// Probabilistic SSP (Wang, Catterall and Mortier, "Probabilistic synchronous parallel", 2017): the workers that `worker` looks at before it
// reads at `clock`, each other one as likely, `policy.sampled` or all others. A function of (seed, clock, worker).
std::vector<std::uint32_t> sampled(const Pssp& policy, std::uint64_t seed, Clock clock, std::uint32_t worker, std::uint32_t workers);

}  // namespace shoal::table
