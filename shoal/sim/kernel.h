// Events in simulated time: timers, and flows over links that share them max-min fairly (topo/fair_shares.h). Exact and deterministic:
// the same calls give the same events, and no clock is read. Links are numbers with a capacity; what they are and how long bytes
// travel is the caller's (a latency is a timer before or after a flow).
//
// Priority. Where a flow enters the network, on its first link, its sender serves flows of a lower number first: a flow gets what
// all flows of lower numbers on that first link leave, and of links further on what all flows leave that are not held back so.
// Flows of different senders are equal, whatever their numbers.
//
// When a flow begins or ends, only flows that it reaches over shared links are computed anew, once for all that happens at one
// moment; a flow alone on its links costs O(path). Threads: one at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shoal/sim/event_queue.h"
#include "shoal/topo/fair_shares.h"

namespace shoal::sim {

struct Event {
  enum class Kind : std::uint8_t { timer, flow } kind = Kind::timer;  // it is time; the flow's last byte has left its last link
  std::uint64_t token = 0;                                            // as the caller gave it
};

class Kernel {
 public:
  explicit Kernel(std::vector<double> capacities);  // bytes/s, > 0, by link

  double now() const { return now_; }               // seconds; begins at 0
  // At `when`, or now if that is past.
  void timer(double when, std::uint64_t token);
  // From now on. `links`: in order, none twice, not empty unless `cap` is finite; they stay where they are until the flow has ended.
  // bytes: infinity never ends. cap: bytes/s. Returns its number, which is its own until it has ended.
  std::uint32_t flow(std::span<const std::uint32_t> links, double bytes, std::uint64_t token, std::uint32_t priority = 0,
                     double cap = std::numeric_limits<double>::infinity());
  void cancel(std::uint32_t flow);                         // ends it without an event; what it has moved is carried
  void set_capacity(std::uint32_t link, double capacity);  // bytes/s, > 0, from now on
  // Goes on to the next event; false when none is left. Events of one moment (a picosecond) come in the order in which they were
  // scheduled, before anything is computed anew.
  bool next(Event& event);

  // What comes at this moment behind the next event is known already, and in large simulations none of what it is about is in the processor's caches: calls
  // visit(k, token) for the k-th event behind the next, k <= most, so that the caller can have it fetched; the kernel has its own fetched before.
  template <class Visit>
  void foresee(std::uint32_t most, Visit visit) const {
    queue_.behind_first(most + 1, [&](std::uint32_t k, const Scheduled& event) {
      if (k <= most) {
        visit(k, event.is_flow ? flows_[event.token].token : event.token);
      } else if (event.is_flow) {
        __builtin_prefetch(&flows_[event.token]);
      }
    });
  }

  double carried(std::uint32_t link) const;         // bytes so far
  std::uint64_t solved() const { return solved_; }  // flows whose rate was computed together with others', so far

 private:
  static constexpr std::uint32_t kNear = 2;
  struct alignas(64) Flow {                // what its end needs is in one line of the processor's cache, where it has at most kNear links
    const std::uint32_t* links = nullptr;
    std::uint32_t hops = 0;
    std::uint32_t version = 0;             // of its end in the queue
    double left = 0, rate = 0, since = 0;  // bytes at `since`; bytes/s since then
    std::uint64_t token = 0;
    std::uint32_t near_links[kNear] = {};  // the first of `links`
    std::uint32_t near_places[kNear] = {}; // where it stands among the flows of these
    double cap = 0;
    std::uint64_t seen = 0;                // by which solve
    std::uint32_t priority = 0;
    bool open = false;
    std::vector<std::uint32_t> places;     // of the other links
    std::uint32_t link(std::uint32_t hop) const { return hop < kNear ? near_links[hop] : links[hop]; }
    std::uint32_t& place(std::uint32_t hop) { return hop < kNear ? near_places[hop] : places[hop - kNear]; }
  };
  struct Crossing {
    std::uint32_t flow, hop;               // flows_[flow].links[hop] is this link
  };
  struct Link {
    double capacity = 0, carried = 0;
    std::vector<Crossing> flows;
    std::uint64_t seen = 0;
    std::uint32_t number = 0;              // in the problem that is being solved
  };
  struct Scheduled {
    std::uint64_t token;                   // a flow's number, or the timer's token
    std::uint32_t version;
    bool is_flow;
  };

  void settle(Flow& flow);                 // what it has moved since
  void set_rate(std::uint32_t flow, double rate);
  void remove(std::uint32_t flow);
  void share();                            // computes what has changed
  void share_with(std::uint32_t link);     // and all that is reached from this link
  void set_levels();
  bool alone(const Flow& flow) const;

  double now_ = 0;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;        // flow numbers
  EventQueue<Scheduled> queue_;            // ends of other versions are void
  std::uint64_t solves_ = 0, solved_ = 0;
  std::vector<std::uint32_t> begun_;       // flows without a rate yet
  std::vector<std::uint32_t> left_behind_; // links from which a flow was taken
  topo::FairShares shares_;
  std::vector<std::uint32_t> reached_, reached_links_, levels_, path_;
};

}  // namespace shoal::sim
