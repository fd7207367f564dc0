// Rows of words where every member has all of them (parallel.h, data): copies of slices, as those of a table under SSP (table/consistency.h) with one
// clock for each step of the rotation. What a member's workers did to a slice is told to all others once they have had it (slice_changes.h); a worker
// reads a slice at step c with everything that others told after steps before c - staleness, and not more, and with all that its own member did. So
// what it draws from is a function of the steps alone, whatever the timing.
//
// A slice is one worker's at a time, of all members: with a staleness of less than the slices that each worker has (schedule/rotation.h), everything
// that was done to it before has been told when the next one reads it, as if the slice itself went round. Then all have one history of it, and what
// is told may be whole rows where these are shorter. With more staleness a member waits for less, and reads older counts.
//
// Threads: enter() and leave() by the worker that has the slice; everything else between two rounds. Lifetime: rotation and ring outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/learn/topic/slice.h"
#include "shoal/schedule/ring.h"

namespace shoal::learn::topic {

class ToldSlices {
 public:
  // ring: of copies.
  ToldSlices(const schedule::Rotation& rotation, schedule::Ring<Slice>& ring, net::Rank rank, net::Rank members, unsigned staleness, Topic topics);

  // Before and after a worker's turn with the slice. Throws what Ring::told() throws, and Error{mismatch} for what cannot be.
  void enter(const schedule::Place& turn, Slice& slice, Nanoseconds& waited);
  void leave(const schedule::Place& turn, const Slice& slice);

  // Everything that is told before that step is read, however new: counts begin there.
  void settle(std::uint64_t step) { settled_ = step; }
  // Nothing that was told before that step is read any more.
  void forget(std::uint64_t step);
  // A copy of that slice with everything that was told before that step, which is then read as if nobody had looked.
  Slice as_of(std::uint32_t number, const Slice& slice, std::uint64_t step);

 private:
  struct Telling {                 // of another member, once a round
    std::uint64_t step_in_round;
    std::uint32_t worker;
  };
  schedule::Place telling(std::uint32_t number, std::uint64_t nth) const;

  const schedule::Rotation rotation_;
  schedule::Ring<Slice>& ring_;
  const schedule::Team team_;
  const unsigned staleness_;
  const Topic topics_;
  const bool one_history_;
  std::uint64_t settled_ = 0;
  std::vector<std::vector<Telling>> tellings_;    // of each slice, ascending
  std::vector<std::uint64_t> read_;               // of each slice: how many tellings, in all rounds
  std::vector<std::unique_ptr<Slice>> entered_;   // of each slice that this member's workers have: as it was without what they did
};

}  // namespace shoal::learn::topic
