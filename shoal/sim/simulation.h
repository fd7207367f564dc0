// What simulate() is made of: the network that all jobs share, their attempts (running.h), and what is done when members are lost (recovering.cc).
// Internal to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shoal/sim/fifo.h"
#include "shoal/sim/kernel.h"
#include "shoal/sim/paths.h"
#include "shoal/sim/run_program.h"
#include "shoal/sim/running.h"
#include "shoal/sim/sized_program.h"
#include "shoal/sim/token.h"

namespace shoal::sim {

inline constexpr double kEndless = std::numeric_limits<double>::infinity();  // never ended, by any time

class Simulation {
 public:
  Simulation(const topo::Topology& topology, std::span<const Job> jobs, std::span<const Transfer> transfers, const Costs& costs, bool trace,
             const Faults& faults);
  Outcome run();

  // What an attempt asks for while it runs.
  double now() const { return kernel_.now(); }
  const Costs& costs() const { return costs_; }
  void timer(double when, Token token) { kernel_.timer(when, token.packed()); }
  void occupy(topo::Node host, double seconds, Token then);  // its thread, behind all that it was given; then that event comes
  std::uint32_t channel(topo::Node from, topo::Node to, std::uint32_t priority, bool by_switches);  // its number
  double latency(std::uint32_t channel) const { return channels_[channel].path->latency; }
  void offer(std::uint32_t channel, std::uint32_t attempt, std::uint32_t stream);  // whose train leaves when it is its turn: Running::take()
  void sent(std::uint32_t attempt, Sent sent);
  void done(std::uint32_t attempt, std::uint32_t rank);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
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

  void serve(std::uint32_t channel);
  void foresee();
  void handle(const Token& token);  // by reference: its parts are written one by one, and to read them as one soon after would wait for them
  void handle_running(const Token& token);
  void handle_transfer(const Token& token);
  std::uint32_t flow(const Path& path, double bytes, Token token, std::uint32_t priority, double cap);
  void schedule(std::uint32_t job, std::uint32_t rank);
  void plan_starts();
  std::uint32_t* waits(const Awaited& later, topo::Node host);  // how many jobs it still waits for; null if it does not wait for this one
  void start(std::uint32_t job, std::uint32_t rank);
  std::uint32_t begin_with_all_left(std::uint32_t job);  // an attempt
  std::uint32_t begin(std::uint32_t job, const Job* what, std::vector<std::uint32_t> ranks);
  void go_on(std::uint32_t attempt);       // behind what has happened to it
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
  void handle_fault(const Token& token);
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
  Paths paths_;
  Kernel kernel_;
  std::map<std::pair<const Path*, std::uint32_t>, std::uint32_t> channel_of_;  // by path and priority
  std::vector<Channel> channels_;
  std::vector<double> thread_free_;                          // by host: when its thread has done all that it was given
  struct Size {
    const collective::Program* program;
    std::uint64_t elements;
    double element_bytes;
    const std::vector<std::uint64_t>* chunks;
    auto operator<=>(const Size&) const = default;
  };
  std::map<Size, std::shared_ptr<const SizedProgram>> sized_;
  bool foresees_ = false;                                    // a program is larger than the processor's caches
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
