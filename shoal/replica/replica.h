// A matrix of which every member has all rows, kept together by sufficient factors: sufficient factor broadcasting with clocks (Xie et al.,
// UAI 2016; stale synchronous parallel as of Ho et al., NIPS'13). There is no server. A worker adds sums of outer products; with each
// tick what it added in that clock goes to all others, as factors, and everybody multiplies.
//
//   replica::Replica<float> weights(job.transport(), {.name = "weights", .rows = 55197, .width = 105, .staleness = 3});
//   for (...) {
//     weights.read(keys, values);   // no wait, no message
//     weights.add(factors);         // is in what this member reads at once
//     weights.tick();               // waits while somebody is more than 3 clocks behind
//   }
//
// What a member reads at clock c holds all increments with timestamps up to c - staleness - 1, its own, and whatever else has arrived; with a
// staleness of 0 nothing else.
// Rows are there twice: *settled* ones hold those clocks that everybody has completed, added in the order of (clock, rank); and what is read
// holds later ones, too. Where nothing later is in a row, both have the same bits: so all members do behind a barrier, and with a staleness of 0.
//
// Threads: one worker a member. Errors: as of tables; Error{invalid_argument} where the job goes on without lost members: a relay may be one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/factor/outer.h"
#include "shoal/factor/overlay.h"
#include "shoal/net/waiting.h"
#include "shoal/replica/broadcast.h"
#include "shoal/table/clocks.h"

namespace shoal::replica {

using table::Clock;
using Key = std::uint64_t;

struct Options {
  std::string name;
  Key rows = 0;                             // keys are below
  std::size_t width = 1;                    // numbers in a row
  unsigned staleness = 0;
  std::optional<factor::Overlay> overlay{}; // none: everybody sends to everybody
  Nanoseconds patience = std::chrono::seconds(300);
  std::uint16_t channel = 6;                // of the transport's operations; one that nothing else has used
};

template <class T>  // float or double
class Replica {
 public:
  using Outer = factor::Outer<T>;
  // By all members; rows begin as zeros. The transport outlives it.
  Replica(net::Transport& transport, const Options& options);
  // Waits until what this member said has left. Others need it no more after a barrier.
  ~Replica();
  Replica(const Replica&) = delete;

  const Options& options() const { return options_; }
  Clock clock() const { return clock_; }

  // As the last tick or barrier left it, and with what was added since; valid until the next of them.
  std::span<const T> row(Key key) const { return {&values_[key * options_.width], options_.width}; }
  void read(std::span<const Key> keys, std::span<T> values) const;  // rows one below the other
  void add(Outer outer);                                            // sealed
  void tick();
  // By all members: when it returns all have everything that was added before and nothing else, with the same bits, and are at the clock of who was
  // furthest. Who waits here holds nobody back.
  void barrier();
  // The halves of tick() and barrier(), for who must not block, as on the scripted network.
  void end_clock();
  bool may_go_on();
  std::uint64_t arrive();                                           // the number of the barrier
  bool have_met(std::uint64_t number);
  // Between two barriers, while nobody adds: rows that this member alone gives, for all of them; others have them after the second.
  void set(std::span<const Key> keys, std::span<const T> values);
  // Right behind a barrier, by all members alike: all rows below `end` times `factor`. Nothing is sent.
  void scale(double factor, Key end);

 private:
  struct Update {                           // that is not settled
    Clock clock;
    Outer outer;
    bool shown = false;                     // is in values_
  };
  // What came of one member. Behind its coming to a barrier nothing is taken before all have come.
  struct Origin {
    std::deque<Message> arrived;
    std::deque<Update> updates;
    bool at_barrier = false, left = false;
  };
  struct Box : net::Arrivals {              // what the loop hands to the worker
    void deliver(Message message);
    bool empty();
    std::mutex mutex;                       // guards arrived
    std::vector<Message> arrived;
    std::unique_ptr<Broadcast> broadcast;   // made and destroyed on the loop
  };

  net::Failure failure() const;
  void send(Kind kind, Bytes body, bool ends_clock);
  void send_open(bool ends_clock);
  template <class Ready>
  void wait(const Ready& ready, const char* what);
  void note_traffic() const;
  // Takes what has arrived, and settles and shows what it allows.
  void take_in();
  void take(const Message& message);
  void come_to_barrier(net::Rank origin, Clock clock);
  bool meet();
  void settle_below(Clock clock);
  void settle(const Update& update);
  void show(Update& update);
  std::span<T> row_of(std::vector<T>& rows, Key key) { return {&rows[key * options_.width], options_.width}; }

  const Options options_;
  net::Transport& transport_;
  std::vector<T> values_, settled_;         // rows x width
  std::vector<std::uint32_t> unsettled_;    // by row: updates that are in values_ and not in settled_
  std::vector<Origin> origins_;             // by rank
  table::Clocks clocks_;
  std::uint64_t met_ = 0;                   // barriers
  Clock clock_ = 0;                         // this member's
  std::optional<Bytes> open_;               // added in this clock, the last, not sent yet
  std::shared_ptr<Box> box_;                // the loop's, too
  net::Waiting waiting_;
  std::uint64_t sent_ = 0, bytes_ = 0;      // updates, and their bytes, once for each other member
  Nanoseconds waited_{0};
};

}  // namespace shoal::replica
