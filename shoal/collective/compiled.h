// A program as the runner reads it: one rank's part, laid out flat, and who must look again after whom. Made once for
// each (program, rank) and shared by all its runs. Immutable; share across threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/collective/verify.h"

namespace shoal::collective {

// An op instance of a lane: iteration `iteration` of op `op` of loop `loop`. Indices count through all lanes of the rank.
struct Place {
  std::uint32_t loop = 0, iteration = 0, op = 0;
  auto operator<=>(const Place&) const = default;  // the order inside one lane
};

class Compiled {
 public:
  struct Step {                  // an Op, and what its `after` refers to
    const Op* op;
    std::uint32_t stream;        // lane of the sender's side
    std::uint32_t first_wait, waits;
  };
  struct Wait {
    std::uint32_t lane, loop, step, times;  // `times`: of that loop
    std::int32_t shift;
  };
  struct LoopRange {
    std::uint32_t first, count, times;
  };  // steps
  struct LaneRange {
    std::uint32_t first, count;          // loops
    bool lands = false;                  // has a receive_reduce, so needs a window of its own
    std::vector<std::uint32_t> wakes;    // lanes that may go on when this one has
  };

  Compiled(Verified program, std::uint32_t rank);

  const Program& program() const { return verified_.program(); }
  std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }
  const LaneRange& lane(std::uint32_t lane) const { return lanes_[lane]; }
  const Step& step(const Place& place) const { return steps_[place.op]; }
  std::span<const Wait> waits(const Step& step) const { return std::span(waits_).subspan(step.first_wait, step.waits); }
  std::uint32_t chunk(const Place& place) const { return chunk_of(program(), *steps_[place.op].op, place.iteration); }
  std::uint32_t chunk(const Wait& wait, std::uint32_t iteration) const {
    return chunk_of(program(), *steps_[wait.step].op, iteration);
  }
  std::uint32_t peer(const Place& place) const { return peer_of(program(), *steps_[place.op].op, place.iteration); }
  const std::vector<std::uint32_t>& input_chunks() const { return input_chunks_; }  // chunks whose input is read

  Place begin(std::uint32_t lane) const;
  Place next(std::uint32_t lane, Place place) const;
  bool at_end(std::uint32_t lane, const Place& place) const { return place.loop == lanes_[lane].first + lanes_[lane].count; }

 private:
  void flatten(const std::vector<Lane>& lanes);
  void find_wakes();
  void find_inputs();
  Place settle(std::uint32_t lane, Place place) const;  // past loops that do nothing

  Verified verified_;
  std::vector<Step> steps_;
  std::vector<Wait> waits_;
  std::vector<LoopRange> loops_;
  std::vector<LaneRange> lanes_;
  std::vector<std::uint32_t> input_chunks_;
};

}  // namespace shoal::collective
