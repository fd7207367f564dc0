// One program under way in simulate(), slice by slice. Internal to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shoal/sim/fifo.h"
#include "shoal/sim/run_program.h"
#include "shoal/sim/sized_program.h"
#include "shoal/sim/token.h"

namespace shoal::sim {

class Simulation;

// Slices of one stream that go together.
struct Train {
  std::uint32_t slices = 0, messages = 0;
  double bytes = 0;
};

// One attempt at a job: a state machine like collective::Operation, for all its ranks at once.
//
// Invariants
// 1. Slices of a lane are done in the order in which they began: all in flight belong to one stream, or are local.
// 2. A window's writer is at most program.window() slices ahead of its reader.
// 3. A stream has at most one train on its channel; slices leave when they are prepared and their receive is posted.
class Running {
 public:
  Running(Simulation& simulation, std::uint32_t attempt, const Job& what, std::shared_ptr<const SizedProgram> program);

  void start(std::uint32_t rank);
  void prepared(std::uint32_t stream);     // the sender's thread has handed it to the network
  double take(std::uint32_t stream);       // what goes next: its bytes; the stream has something to send
  void flown(std::uint32_t stream, double began);
  void arrived(std::uint32_t stream);
  void taken(std::uint32_t stream);        // the receiver's thread is done with it
  void local_done(std::uint32_t lane);
  void go();                               // until every lane waits

  // The steps of the way through memory that an event of `stream` will go, each of which needs the one before.
  static constexpr std::uint32_t kFetchSteps = 4;
  void fetch(std::uint32_t stream, bool sent, std::uint32_t step) const;

  bool complete() const { return incomplete_ranks_ == 0; }
  std::string standstill() const;          // where it waits

 private:
  // A large program's lanes and streams do not fit in the processor's caches: each lies in as few lines of them as can be, with what the program says of it.
  struct alignas(64) LaneState {
    Position next, oldest;                 // to begin; not yet done
    std::span<const std::uint32_t> wakes;  // lanes that may go on when this one has
    std::uint32_t rank = 0, end = 0;       // the loop behind its last
    std::uint32_t in_flight = 0;
    bool queued = false;
    bool at_end(const Position& at) const { return at.loop == end; }
  };
  struct Window {
    std::uint32_t written = 0, read = 0;   // slices
  };
  struct alignas(64) StreamState {
    SizedProgram::Stream ends;
    std::uint32_t posted = 0;              // slices
    std::uint32_t channel = SizedProgram::kNone;
    bool waiting = false;                  // in its channel, or flying
    Train flying;
    Fifo<Train> ready, in_transit;
    Fifo<Train> preparing, being_taken;    // by the threads of sender and receiver
  };
  struct RankState {
    std::uint32_t incomplete = 0;          // lanes
    bool started = false;
  };

  bool step(std::uint32_t lane);
  void begin_send(std::uint32_t lane, std::uint32_t stream, const Train& train);
  void begin_local(std::uint32_t lane, const collective::Op& op, const Train& train);
  void offer(std::uint32_t stream);        // to its channel, if something may leave
  void receive(std::uint32_t stream, const Train& train);
  void done(std::uint32_t lane, std::uint32_t slices);
  bool pass_empty(std::uint32_t lane);     // whether there were some
  void progressed(std::uint32_t lane);     // once for each slice that ends the lane
  void wake(std::uint32_t lane);
  Window& window(std::uint32_t lane, std::uint32_t slot) { return windows_[std::size_t{lanes_[lane].rank} * slots_ + slot]; }
  topo::Node host(std::uint32_t lane) const { return what_.hosts[lanes_[lane].rank]; }
  void occupy(topo::Node host, double seconds, Token::Kind kind, std::uint32_t index);  // its thread; then that event comes

  Simulation& simulation_;
  const std::uint32_t attempt_;
  const Job& what_;
  const std::shared_ptr<const SizedProgram> program_;
  const std::uint32_t slots_;
  std::vector<LaneState> lanes_;
  std::vector<Window> windows_;
  std::vector<StreamState> streams_;
  std::vector<RankState> ranks_;
  std::uint32_t incomplete_ranks_ = 0;
  Fifo<std::uint32_t> woken_;              // lanes to look at
};

}  // namespace shoal::sim
