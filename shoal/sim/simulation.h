// What simulate() is made of: the network that all jobs share, and one job under way. Internal to the room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shoal/sim/kernel.h"
#include "shoal/sim/run_program.h"
#include "shoal/sim/sized_program.h"
#include "shoal/topo/routes.h"

namespace shoal::sim {

class Simulation;

// First in, first out. The first value lies here, and others in memory of their own, which is kept.
template <class Value>
class Fifo {
 public:
  bool empty() const { return count_ == 0; }
  Value& front() { return first_; }
  void push(Value value) {
    if (count_++ == 0) {
      first_ = std::move(value);
    } else {
      others_.push_back(std::move(value));
    }
  }
  Value pop() {
    Value value = std::move(first_);
    if (--count_ == 0) return value;
    first_ = std::move(others_[head_++]);
    if (head_ == others_.size()) {
      others_.clear();
      head_ = 0;
    } else if (head_ >= 64 && 2 * head_ >= others_.size()) {
      others_.erase(others_.begin(), others_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return value;
  }

 private:
  Value first_{};
  std::uint32_t count_ = 0, head_ = 0;  // head_: of others_
  std::vector<Value> others_;
};

// Slices of one stream that go together.
struct Train {
  std::uint32_t slices = 0, messages = 0;
  double bytes = 0;
};

// What an event of the kernel is about: kept in its token.
struct Token {
  enum class Kind : std::uint8_t { start, prepared, flown, arrived, taken, local, transfer_start, transfer_flown, transfer_arrived } kind;
  std::uint32_t job;    // < 2^24; of transfers 0
  std::uint32_t index;  // start: rank; flown: channel; prepared, arrived, taken: stream; local: lane; else transfer

  std::uint64_t packed() const { return std::uint64_t(kind) << 56 | std::uint64_t{job} << 32 | index; }
  static Token of(std::uint64_t packed) {
    return {Kind(packed >> 56), static_cast<std::uint32_t>(packed >> 32 & 0xffffff), static_cast<std::uint32_t>(packed)};
  }
};

// One job: a state machine like collective::Operation, for all its ranks at once.
//
// Invariants
// 1. Slices of a lane are done in the order in which they began: all in flight belong to one stream, or are local.
// 2. A window's writer is at most program.window() slices ahead of its reader.
// 3. A stream has at most one train on its channel; slices leave when they are prepared and their receive is posted.
class Running {
 public:
  Running(Simulation& simulation, std::uint32_t job, const Job& what, std::shared_ptr<const SizedProgram> program);

  void start(std::uint32_t rank);
  void prepared(std::uint32_t stream);     // the sender's thread has handed it to the network
  Train take(std::uint32_t stream);        // what goes next; the stream has something to send
  void flown(std::uint32_t stream, double began);
  void arrived(std::uint32_t stream);
  void taken(std::uint32_t stream);        // the receiver's thread is done with it
  void local_done(std::uint32_t lane);
  void go();                               // until every lane waits

  bool complete() const { return incomplete_ranks_ == 0; }
  std::string standstill() const;          // where it waits

 private:
  struct LaneState {
    Position next, oldest;                 // to begin; not yet done
    std::uint32_t in_flight = 0;
    bool queued = false;
  };
  struct Window {
    std::uint32_t written = 0, read = 0;   // slices
  };
  struct StreamState {
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
  void begin_send(std::uint32_t lane, std::uint32_t stream, Train train);
  void begin_local(std::uint32_t lane, const collective::Op& op, Train train);
  void offer(std::uint32_t stream);        // to its channel, if something may leave
  void receive(std::uint32_t stream, Train train);
  void done(std::uint32_t lane, std::uint32_t slices);
  bool pass_empty(std::uint32_t lane);     // whether there were some
  void progressed(std::uint32_t lane);     // once for each slice that ends the lane
  void wake(std::uint32_t lane);
  Window& window(std::uint32_t lane, std::uint32_t slot) { return windows_[std::size_t{program_->rank_of(lane)} * slots_ + slot]; }
  topo::Node host(std::uint32_t lane) const { return what_.hosts[program_->rank_of(lane)]; }
  void occupy(topo::Node host, double seconds, Token::Kind kind, std::uint32_t index);  // its thread; then that event comes

  Simulation& simulation_;
  const std::uint32_t job_;
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

class Simulation {
 public:
  Simulation(const topo::Topology& topology, std::span<const Job> jobs, std::span<const Transfer> transfers, const Costs& costs, bool trace);
  Outcome run();

 private:
  friend class Running;
  struct Path {
    std::vector<std::uint32_t> links;      // of the kernel
    double latency = 0;
  };
  // From one host to another at one priority: one train at a time, of streams in turn.
  struct Channel {
    const Path* path;
    topo::Node from, to;
    std::uint32_t priority;
    bool busy = false;
    double began = 0;
    Token serving;                         // job and stream
    Fifo<Token> waiting;
  };

  const Path& path(topo::Node from, topo::Node to);
  std::uint32_t channel(topo::Node from, topo::Node to, std::uint32_t priority);
  void serve(std::uint32_t channel);
  void finished(std::uint32_t job, std::uint32_t rank);
  double occupy(topo::Node host, double seconds);  // its thread: until when
  void handle(Token token);
  void handle_transfer(Token token);
  void flow(const Path& path, double bytes, Token token, std::uint32_t priority, double cap);
  void schedule(std::uint32_t job, std::uint32_t rank);
  void plan_starts();
  std::uint32_t* waits(const Awaited& later, topo::Node host);  // how many jobs it still waits for; null if it does not wait for this one
  Running& running(std::uint32_t job);
  void check() const;
  Outcome outcome();

  const topo::Topology& topology_;
  const std::span<const Job> jobs_;
  const std::span<const Transfer> transfers_;
  const Costs costs_;
  const bool trace_;
  topo::Routes routes_;
  Kernel kernel_;
  std::unordered_map<std::uint64_t, Path> paths_;            // by from and to
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> channel_of_;
  std::vector<Channel> channels_;
  std::vector<double> thread_free_;                          // by host: when its thread has done all that it was given
  struct Size {
    const collective::Program* program;
    std::uint64_t elements;
    double element_bytes;
    auto operator<=>(const Size&) const = default;
  };
  std::map<Size, std::shared_ptr<const SizedProgram>> sized_;
  std::vector<std::unique_ptr<Running>> running_;            // by job
  std::vector<std::vector<std::uint32_t>> waits_for_;        // by job, by rank: earlier jobs that its host has not ended
  std::vector<std::vector<Awaited>> next_;                   // by job: which ranks of which jobs wait for it
  std::vector<std::unordered_map<topo::Node, std::uint32_t>> rank_of_;  // by job that waits
  std::size_t incomplete_jobs_ = 0;
  Outcome outcome_;
};

}  // namespace shoal::sim
