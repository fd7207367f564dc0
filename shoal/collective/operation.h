// One run of a program on one member: a state machine on the transport's loop.
//
// Each lane has two places in its list of slices: where the next one begins and where the oldest that is not done
// stands. Up to kSending or kReceiving slices of one stream are between them; additions and copies are done as they begin.
//
// Invariants
// 1. Slices of a lane are done in the order in which they began: all in flight belong to one stream, or are local.
// 2. A window's writer is at most `depth_` slices ahead of its reader.
// 3. done_ runs once, after every handler given to the transport has run: until then the caller's memory may be in use.
//
// Lifetime: handlers hold the operation; it needs its Runner's Group for nothing but its registration and memory pool.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/compiled.h"
#include "shoal/collective/run.h"
#include "shoal/collective/scratch.h"
#include "shoal/collective/under_way.h"

namespace shoal::collective {

class Operation;

// What the runs of one Runner share.
struct Group {
  Group(net::Transport& of_transport, std::vector<net::Rank> of_members);

  net::Transport& transport;
  const std::vector<net::Rank> members;
  std::uint32_t rank = 0;
  ScratchPool pool;
  std::vector<std::shared_ptr<Operation>> open;  // few at a time
  net::Failure lost;                             // of a member, or why else the group ended
  std::vector<std::weak_ptr<Group>> parts;       // that end with it
};

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  Operation(std::shared_ptr<Group> group, std::shared_ptr<const Compiled> program, const Layout& layout, Buffers buffers,
            const Run& run, net::Done done);

  void begin();
  void end(const net::Failure& why);                      // early: cancelled, or a peer was lost
  std::uint64_t id() const { return run_.operation; }
  void describe(std::vector<std::string>& lines) const;   // what it waits for

 private:
  struct Cursor {                      // a slice of an op instance
    Place place;
    std::uint32_t chunk = 0, peer = 0;
    std::uint64_t slice = 0, slices = 0;
  };
  static constexpr std::uint32_t kDepth = kReceiving, kLeastDepth = 2;  // slices of a window
  struct Landing {                     // of a receive_reduce in flight
    std::byte* bytes = nullptr;
    const std::byte* source = nullptr;
    std::byte* target = nullptr;
  };
  struct LaneState {
    Cursor next, oldest;               // to begin; not yet done
    std::uint32_t in_flight = 0;
    bool queued = false;
    std::array<Landing, kDepth> landings;
    std::uint64_t landed = 0, added = 0;  // slices that began and ended in `landings`
  };
  struct Window {
    std::byte* bytes = nullptr;
    std::uint64_t written = 0;         // slices whose writing began
    std::uint64_t taken = 0;           // slices whose reading began
    std::uint64_t read = 0;            // slices that were read: their place is free
  };

  // memory
  void allocate();
  void scale_input();                  // a piece at a time, then run()
  std::uint64_t slices(std::uint32_t chunk) const { return (layout_.count[chunk] + slice_ - 1) / slice_; }
  std::uint64_t elements(const Cursor& at) const;
  const std::byte* source(const Cursor& at, const Site& site);   // a window's slice counts as taken
  std::byte* target(const Cursor& at, const Site& site);         // the same for its writing

  // progress
  void wake(std::uint32_t lane);
  void start_lanes();
  void run();                          // until every lane waits
  bool step(std::uint32_t lane);       // begins one slice if it may
  bool may_begin(const LaneState& lane) const;
  bool waits_over(const Cursor& at) const;
  void begin_slice(std::uint32_t lane);
  void begin_local(std::uint32_t lane, const Op& op);
  void moved(std::uint32_t lane, const net::Failure& why);
  void add_landed(LaneState& state, const Op& op);
  void slice_done(std::uint32_t lane);
  void finish_addition(const Cursor& at, const Op& op, std::byte* into) const;
  void pass_done(std::uint32_t lane);  // `oldest` over op instances that are complete
  void enter(std::uint32_t lane, Cursor& cursor, Place place) const;
  bool complete(std::uint32_t lane) const { return program_->at_end(lane, lanes_[lane].oldest.place); }
  net::Done handler(std::uint32_t lane);
  void later(void (Operation::*what)());
  void settle();                       // calls done_ if nothing is left to happen

  const std::shared_ptr<Group> group_;
  const std::shared_ptr<const Compiled> program_;
  const Layout layout_;
  const Buffers buffers_;
  const Run run_;
  net::Done done_;
  const std::size_t element_;          // bytes
  const double divisor_;
  std::uint64_t slice_ = 1;            // elements
  std::size_t slice_bytes_ = 0;        // a window's place for one
  std::uint32_t depth_ = 0;            // slices of a window

  const std::byte* input_ = nullptr;
  ScratchBlock scratch_, scaled_;
  std::size_t scaled_chunks_ = 0;
  std::uint64_t scaled_slices_ = 0;
  std::vector<LaneState> lanes_;
  std::vector<Window> windows_;
  std::vector<const void*> addends_;   // of one fold
  std::vector<std::uint32_t> ready_;   // lanes to look at, first in first out
  std::size_t ready_head_ = 0;
  std::uint32_t incomplete_ = 0;       // lanes
  std::uint32_t outstanding_ = 0;      // handlers that have not run
  bool finished_ = false;
  net::Failure failure_;
  Instant began_;
};

}  // namespace shoal::collective
