// Credit: how receivers keep both the memory for unexpected bytes and the queue at their link bounded, after Homa
// (SIGCOMM'18). A sender may send a little of a stream on its own (eager); all else it sends because the receiver
// granted it, up to an absolute offset of the stream, for receives that are posted (but what a member of its host reads in its
// memory: Transport::give). The receiver keeps the bytes it has
// granted and not yet received, summed over all senders, below a window of about rate x reaction time: enough to
// keep its link busy, too little to make an urgent message wait long behind them. No sender is granted more of it than twice what it gives in that time: the link of
// a slow one would only queue the rest, before its grants to others. A stream that is dry, whose sender has nothing of it, because it still computes or
// waits for another member itself, does not count: else the most urgent streams, which are the latest that are produced, would hold the whole
// window while others could use the link. Its sender says so, at once. What such streams were granted may all come at once in the end; it is at most a
// window each.
//
// Invariants of a Demand:  1. granted <= posted.  2. Only granting raises `granted`.
// Numbers only steer the flow: the order of the bytes is TCP's, so a stream whose two ends count from different
// starts (one has forgotten it) is slower for a moment, never wrong; shift() mends it.
//
// Pure policy with injected time; one thread.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/send_queue.h"
#include "shoal/net/transport.h"

namespace shoal::net {

inline constexpr std::uint64_t kEagerStream = 64 * 1024;   // bytes of a stream sent before the receiver asked
inline constexpr std::uint64_t kEagerPeer = 256 * 1024;    // the same over all streams to a peer

inline constexpr std::uint64_t kEagerTold = kEagerPeer / 4 * 3;  // consumed bytes that are worth a message to the sender

// The sender's side of the eager budget of one peer. Both counters run since the start.
class EagerBudget {
 public:
  std::uint64_t left() const { return kEagerPeer - (sent_ - consumed_); }
  void sent(std::uint64_t bytes) { sent_ += bytes; }
  // What the receiver says it has consumed; false: it cannot be (more than was sent).
  bool consumed(std::uint64_t total);

 private:
  std::uint64_t sent_ = 0, consumed_ = 0;
};

// What one stream's receiver wants from its sender, in bytes since the sender's start of the stream.
struct Demand {
  Rank peer = 0;
  Tag tag;
  Order order;                     // of the receive that was posted first
  std::int64_t received = 0;       // arrived
  std::int64_t posted = 0;         // end of the last posted receive; below `received` if bytes lie unexpected
  std::int64_t granted = 0;
  bool asked = false;              // the sender said that it waits
  bool queued = false;             // in CreditPolicy's queue
  bool dry = false;                // its sender said that it has nothing of it
  Instant begun{};                 // when it was granted something while nothing was open
  bool stands = false;             // CreditPolicy's: granted, and nothing of it is to be expected
};

struct Granted {
  Rank peer;
  Tag tag;
  std::uint64_t base, limit;
};

class CreditPolicy {
 public:
  void posted(Demand& demand, std::uint64_t bytes);
  void arrived(Demand& demand, std::uint64_t bytes, Instant now);
  void dry(Demand& demand) { demand.dry = true; }  // until something of it arrives, or is granted
  // The sender stands at `offset` and waits.
  void asked(Demand& demand, std::uint64_t offset);
  // The sender counts from another start than this side: its `offset` is what this side calls received.
  void shift(Demand& demand, std::uint64_t offset);
  void forget(Demand& demand);                  // before the Demand dies
  void round_trip(Nanoseconds shortest) { round_trip_ = shortest; }
  void round_trip(Rank peer, Nanoseconds latest);  // with the queues of now
  // All peers are processes of this machine: no link has a queue to keep short, and a window only makes members wait for
  // each other's turn on the cores.
  void without_link() { link_ = false; }

  // The grants to send now, best priority first, equals in turn.
  std::vector<Granted> collect(Instant now);
  bool waiting() const { return !queue_.empty(); }   // for the window: collect() again when something arrives
  bool may_come_to_stand() const;                    // since the last collect(): and after stale(), even if nothing does

  std::uint64_t window() const;
  std::uint64_t outstanding(Instant now);        // granted, not arrived, of streams that move
  double rate() const { return rate_.best; }          // bytes/s received while busy, highest of the last seconds

  // Credit of a peer of which nothing has come for so long does not count, like that of dry streams, and it gets no more: others may use the link. As long as a
  // whole window takes, and a wake-up; and where a peer's link has a queue, as long as an answer takes through it.
  Nanoseconds stale() const;
  Nanoseconds stale(Rank peer) const;

 private:
  using Queue = std::set<std::pair<Order, Demand*>>;
  void enqueue(Demand& demand);
  std::uint64_t fair_share(Queue::const_iterator first, std::uint64_t limit) const;
  std::uint64_t window_at(double rate) const;   // once it is known
  void measure(Rank from, std::uint64_t bytes, Instant now);
  void adapt(Instant now);
  void look_who_stands(Instant now);
  void closes(Demand& demand) { std::erase(open_, &demand); }
  static std::uint64_t open(const Demand& demand) {
    return demand.granted > demand.received ? static_cast<std::uint64_t>(demand.granted - demand.received) : 0;
  }

  std::vector<Demand*> open_;                   // with bytes granted and not arrived
  Queue queue_;                                 // wants a grant
  std::uint64_t turn_ = 0;                      // arrivals up to here are taken
  bool link_ = true;
  Nanoseconds round_trip_{};
  struct Best {                                 // the highest figure of the last seconds
    double best = 0;                            // 0: none yet
    Instant when{};
    void hear(double rate, Instant now);
  };
  struct Sender {
    Best rate;                                  // of samples in which something came from it
    std::uint64_t bytes = 0;                    // in this sample
    std::uint64_t outstanding = 0;              // as of the last look: its part of outstanding()
    Instant heard{};                            // when something came from it last
    Nanoseconds round_trip{};
  };
  Sender& sender(Rank peer) {
    if (peer >= senders_.size()) senders_.resize(peer + 1);
    return senders_[peer];
  }
  std::vector<Sender> senders_;                 // by rank
  Best rate_;                                   // of any sample: what the window is made from
  Best full_rate_;                              // means of samples in which the window was the limit
  Seconds reaction_{4e-3};
  bool full_ = false;                           // something waits for the window, as of the last collect()
  bool limited_ = false, was_limited_ = false;  // that was so at every arrival of this sample, of the last
  Instant window_start_{};
  std::uint64_t window_bytes_ = 0;
  std::uint64_t full_bytes_ = 0;                // of samples in which the window was the limit, since the last adapt()
  Nanoseconds full_time_{};
};

}  // namespace shoal::net
