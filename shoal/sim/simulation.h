// What simulate() is made of: the network that all jobs share, and one job under way. Internal to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
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

inline constexpr double kEndless = std::numeric_limits<double>::infinity();  // never ended, by any time

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
  enum class Kind : std::uint8_t {
    start, prepared, flown, arrived, taken, local,         // of attempts; start of jobs
    transfer_start, transfer_flown, transfer_arrived,
    certain,                                               // a rank knows that all hold an operation
    fault, agreed, joined, returned,                       // it strikes; those who are left have voted; others are there; with the state
  } kind;
  std::uint32_t job;    // < 2^24; prepared, arrived, taken, local: attempt; certain: operation; of transfers and faults 0
  std::uint32_t index;  // start, certain: rank; flown: channel; prepared, arrived, taken: stream; local: lane; else transfer or fault

  std::uint64_t packed() const { return std::uint64_t(kind) << 56 | std::uint64_t{job} << 32 | index; }
  static Token of(std::uint64_t packed) {
    return {Kind(packed >> 56), static_cast<std::uint32_t>(packed >> 32 & 0xffffff), static_cast<std::uint32_t>(packed)};
  }
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

class Simulation {
 public:
  Simulation(const topo::Topology& topology, std::span<const Job> jobs, std::span<const Transfer> transfers, const Costs& costs, bool trace,
             const Faults& faults);
  Outcome run();

 private:
  friend class Running;
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Path {
    std::vector<std::uint32_t> links;      // of the kernel
    double latency = 0;
  };
  // From one host to another at one priority: one train at a time, of streams in turn.
  struct Channel {
    const Path* path;
    topo::Node from, to;
    std::uint32_t priority;
    std::uint32_t flow = kNone;            // of the kernel, under way
    double began = 0;
    Token serving;                         // attempt and stream
    Fifo<Token> waiting;
  };
  // A job by those who are there to do it. Given up, or done, it has no `running`, and what comes for it then is void.
  struct Attempt {
    const Job* what;
    std::uint32_t job;                     // Sent::kState: none, but the state on its way to newcomers
    std::vector<std::uint32_t> ranks;      // of the job, by rank of the attempt; empty: all of them
    double began;
    std::unique_ptr<Running> running;
  };
  enum class Begun : std::uint8_t { no, due, yes };  // due: it would have begun, were the others not waited for

  const Path& path(topo::Node from, topo::Node to, bool by_switches = false);
  std::uint32_t channel(topo::Node from, topo::Node to, std::uint32_t priority, bool by_switches);
  void serve(std::uint32_t channel);
  double occupy(topo::Node host, double seconds);  // its thread: until when
  void handle(Token token);
  void handle_running(Token token);
  void handle_transfer(Token token);
  std::uint32_t flow(const Path& path, double bytes, Token token, std::uint32_t priority, double cap);
  void timer(double when, Token token) { kernel_.timer(when, token.packed()); }
  void schedule(std::uint32_t job, std::uint32_t rank);
  void plan_starts();
  std::uint32_t* waits(const Awaited& later, topo::Node host);  // how many jobs it still waits for; null if it does not wait for this one
  void start(std::uint32_t job, std::uint32_t rank);
  std::uint32_t begin_with_all_left(std::uint32_t job);  // an attempt
  std::uint32_t begin(std::uint32_t job, const Job* what, std::vector<std::uint32_t> ranks);
  void go_on(std::uint32_t attempt);       // behind what has happened to it
  void done(std::uint32_t attempt, std::uint32_t rank);
  void finished(std::uint32_t job, std::uint32_t rank);
  void check() const;
  Outcome outcome();

  // Where members may be lost (recovering.cc).
  // Jobs first .. last - 1, held together.
  struct Operation {
    std::uint32_t first = 0, last = 0;
    std::vector<std::uint32_t> open;       // by rank: jobs in which it is not done
    std::vector<double> held;              // by rank: when it was done in all
    bool certain = false;                  // all who are left hold it
    double not_before = 0;                 // until when those who would begin wait for the others
  };
  void check_faults() const;
  void plan_faults();
  void hold(std::uint32_t job, std::uint32_t rank);
  void handle_fault(Token token);
  void strike(std::uint32_t fault);
  std::vector<topo::Node> who_goes(const Fault& cut);
  bool is_cut_off(const Path& path, topo::Node from, topo::Node to) const;
  void cut_off();                          // what flows to and from those who are lost
  void vote(std::uint32_t fault);
  void regroup();                          // all have voted
  void go_on_with_fewer(const std::vector<Operation*>& given_up);
  void await_others(const std::vector<Operation*>& given_up);
  void bring_state();
  void state_came();                       // to one more member
  void come_back();
  std::optional<double> give_up(Operation& operation);  // since when it ran, if it did
  void begin_again(double when);           // whoever waits to
  void finish(Operation& operation, std::uint32_t rank);
  std::vector<std::uint32_t> ranks_left(std::uint32_t job) const;
  std::shared_ptr<const collective::Program> program_of(const Job& job, const std::vector<std::uint32_t>& left) const;
  double told(const std::vector<topo::Node>& hosts, const std::vector<double>& since, std::size_t to);
  bool gone(topo::Node host) const { return life_[host] == Life::lost || life_[host] == Life::out; }
  topo::Node host_of(std::uint32_t job, std::uint32_t rank) const { return jobs_[job].hosts[rank]; }
  const Recovery& recovery() const { return *faults_.recovery; }

  const topo::Topology& topology_;
  const std::span<const Job> jobs_;
  const std::span<const Transfer> transfers_;
  const Costs costs_;
  const bool trace_;
  const Faults& faults_;
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
  std::deque<Attempt> attempts_;
  std::deque<Job> others_;                                   // of attempts by fewer, and of states: as they are done then
  std::vector<std::uint32_t> attempt_;                       // by job: the latest, or kNone
  std::vector<std::vector<Begun>> begun_;                    // by job, by rank
  std::vector<std::uint32_t> open_ranks_;                    // by job: that have not ended it
  std::vector<std::vector<std::uint32_t>> waits_for_;        // by job, by rank: earlier jobs that its host has not ended
  std::vector<std::vector<Awaited>> next_;                   // by job: which ranks of which jobs wait for it
  std::vector<std::unordered_map<topo::Node, std::uint32_t>> rank_of_;  // by job that waits
  std::vector<std::uint32_t> transfer_flow_;                 // by transfer: of the kernel while it is under way, else kNone
  std::size_t incomplete_jobs_ = 0;

  std::vector<Operation> operations_;
  std::vector<std::uint32_t> operation_of_;                  // by job
  std::vector<topo::Node> members_;                          // hosts of all jobs, as they come first in them
  enum class Life : std::uint8_t { there, lost, arriving, out };  // arriving: without the state yet. out: the others go on without it
  std::vector<Life> life_;                                   // by host
  std::vector<double> slowness_;                             // by host: of its thread
  std::vector<double> over_;                                 // by host: when whoever starts others knows that its process is
  std::vector<bool> cut_;                                    // by link
  double agreed_ = 0;                                        // when all will have voted about the losses so far
  std::vector<std::uint32_t> open_losses_;                   // faults from which they have not gone on; the latest counts
  std::uint32_t state_left_ = 0;                             // of the chain, to which the state has not come yet
  std::uint32_t state_attempt_ = kNone;
  Outcome outcome_;
};

}  // namespace shoal::sim
