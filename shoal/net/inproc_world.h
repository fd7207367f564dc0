// Inside inproc.h: the world that all members share, with its clock and links, and one member's end of it.
// One thread, no locks. The world outlives its members; events name members by rank and skip those that have stopped.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shoal/core/seed.h"
#include "shoal/net/closed_operations.h"
#include "shoal/net/inproc.h"
#include "shoal/net/losses.h"
#include "shoal/net/train_counter.h"

namespace shoal::net {

namespace scripted {

inline constexpr Nanoseconds kSilence = std::chrono::seconds(5);  // of the scripted clock, until a silent peer is lost
inline constexpr Nanoseconds kTelling = std::chrono::seconds(1);  // of its links, until all have told which are silent
inline constexpr std::size_t kHeader = 32;                        // wire bytes that a frame has beside its payload
inline constexpr std::size_t kClosedRemembered = 1 << 16;         // operations whose late bytes are known to be stale
inline constexpr std::uint32_t kBackgroundShare = 16;             // one frame in so many, when background waits
inline constexpr Rank kNobody = std::numeric_limits<Rank>::max(); // the network itself

enum Connection : std::uint8_t { control, bulk };

struct Event {
  Instant when;
  std::uint64_t sequence;  // ties run in the order in which they were scheduled
  Rank member;             // does not run once this one is dead or frozen
  std::function<void()> fn;
};
struct Later {
  bool operator()(const Event& a, const Event& b) const { return std::tie(a.when, a.sequence) > std::tie(b.when, b.sequence); }
};

// Place of a stream's next frame in its member's queue: smaller goes first.
struct Turn {
  Class cls;
  std::uint32_t value;
  std::uint64_t iteration, sequence;
  Rank peer;
  Tag tag;
  auto operator<=>(const Turn&) const = default;
};

struct Send {
  std::span<const std::byte> bytes;
  Priority priority;
  std::uint64_t sequence;
  Done done;
};
struct OutStream {
  std::deque<Send> sends;
  std::uint64_t allowed = 0;   // bytes that may still leave: the eager allowance and what the receiver asked for
  std::optional<Turn> turn;    // its entry in the member's queue, while a frame can leave
  Instant ready{};             // since when
};
struct Receive {
  std::span<std::byte> rest;
  Done done;
};
struct InStream {
  std::deque<Receive> receives;
  std::vector<std::byte> early;  // came before they were asked for; at most the eager allowance
};
using StreamKey = std::pair<Tag, Rank>;  // by operation first, so that close() finds its range

struct Peer {                      // what one member knows of another, and the way to it
  LinkStats stats;
  Instant left{};                  // when the last bulk frame to it had left
  TrainCounter trains_out{Nanoseconds(0)}, trains_in{Nanoseconds(0)};
  Instant last_arrival[2];         // per connection: nothing overtakes inside one
  bool cut = false;
};

// One direction of a member's link.
struct Lane {
  Instant free{};                  // when it is idle
  double saved = 0;                // bytes that then pass at once

  Instant pass(Instant now, std::size_t bytes, double rate, double burst) {
    const Instant begin = std::max(now, free);
    if (rate <= 0) return free = begin;
    saved = std::min(burst, saved + Seconds(begin - free).count() * rate);
    const double at_once = std::min(saved, static_cast<double>(bytes));
    saved -= at_once;
    return free = begin + Nanoseconds(static_cast<std::int64_t>((static_cast<double>(bytes) - at_once) / rate * 1e9));
  }
};

}  // namespace scripted

struct InprocJob::World {
  ScriptedNetwork network;
  Instant now{};
  std::uint64_t sequence = 0, draws = 0;
  std::vector<scripted::Event> events;       // a heap by Later
  Rank running = scripted::kNobody;
  std::vector<std::unique_ptr<InprocMember>> members;

  std::uint64_t schedule(Instant when, Rank member, std::function<void()> fn) {
    events.push_back({std::max(when, now), ++sequence, member, std::move(fn)});
    std::push_heap(events.begin(), events.end(), scripted::Later{});
    return sequence;
  }
  Nanoseconds delay() {
    const double span = static_cast<double>((network.delay_max - network.delay_min).count());
    const double drawn = span * uniform(network.seed, ++draws, 0, 0);
    return network.delay_min + Nanoseconds(static_cast<std::int64_t>(drawn));
  }
  std::vector<double> rates;                 // of members' links
  std::vector<scripted::Lane> out, in;       // of the same
  // Puts a frame on a member's link, on which it goes as soon as it is free; when it has passed.
  Instant leave(Rank member, std::size_t bytes) { return out[member].pass(now, bytes, rates[member], network.burst); }
  Instant enter(Rank member, std::size_t bytes) { return in[member].pass(now, bytes, rates[member], network.burst); }
  bool step();                     // one event; false when none is left
  // A message from one member to another; `arrive` runs there, in order inside the connection.
  void travel(Rank from, Rank to, scripted::Connection connection, std::size_t bytes, std::function<void()> arrive);
  void found_closed(Rank finder, Rank lost);
  void found_silent(Rank finder, Rank lost);
  bool shrinks() const { return goes_on(network.on_peer_lost); }
  Failure loss_of(Rank lost, const std::string& how) const;
  void tell_all(Rank teller, const std::function<void(InprocMember&)>& what);
};

class InprocMember final : public Transport {
 public:
  InprocMember(InprocJob::World& world, Rank rank, Rank size)
      : world_(world), rank_(rank), peers_(size), losses_(size, scripted::kTelling), lost_(size) {}

  Rank rank() const override { return rank_; }
  Rank size() const override { return static_cast<Rank>(peers_.size()); }

  void post(std::function<void()> fn) override { world_.schedule(world_.now, rank_, std::move(fn)); }
  bool on_loop() const override { return world_.running == rank_; }
  Instant now() const override { return world_.now; }
  std::uint64_t at(Instant when, std::function<void()> fn) override {
    const std::uint64_t timer = world_.sequence + 1;
    timers_.insert(timer);
    return world_.schedule(when, rank_, [this, timer, fn = std::move(fn)] {
      if (timers_.erase(timer) > 0) fn();
    });
  }
  void cancel(std::uint64_t timer) override { timers_.erase(timer); }
  bool drive(const std::function<bool()>& ready, Instant deadline) override;

  void send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) override;
  void receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) override;
  void close(std::uint64_t operation, const Failure& why) override;

  Failure failure() const override { return failure_; }
  void on_failure(std::function<void(const Failure&)> handler) override {
    if (failure_) {
      post([handler = std::move(handler), why = failure_] { handler(why); });
    } else {
      failure_handlers_.push_back(std::move(handler));
    }
  }
  void fail(const Error& why) override {
    if (stopped || failure_) return;
    const auto shared = std::make_shared<const Error>(why);
    world_.tell_all(rank_, [shared](InprocMember& other) { other.end(shared); });
    end(shared);
  }
  OnPeerLost on_peer_lost() const override { return world_.network.on_peer_lost; }
  Failure lost(Rank peer) const override { return lost_.at(peer); }
  void on_lost(std::function<void(Rank, const Failure&)> handler) override {
    for (Rank peer = 0; peer < size(); ++peer) {
      if (lost_[peer]) post([handler, peer, why = lost_[peer]] { handler(peer, why); });
    }
    loss_handlers_.push_back(std::move(handler));
  }
  void doing(std::string activity) override { activity_ = std::move(activity); }
  LinkStats link(Rank peer) const override {
    const scripted::Peer& other = peers_.at(peer);
    LinkStats stats = other.stats;
    stats.out = other.trains_out.so_far();
    stats.in = other.trains_in.so_far();
    return stats;
  }
  std::string host(Rank peer) const override { return "member" + std::to_string(peer); }

  // What the world does to a member.
  void grant(Rank to, Tag tag, std::uint64_t bytes);
  void deliver(Rank from, Tag tag, std::span<const std::byte> bytes);
  void frame_arrived(Rank from, std::size_t bytes, bool follows);
  void end(const Failure& why);
  void go_on_without(Rank lost, const Failure& why);
  void drop_out(const Failure& why);  // the others go on without this one
  void silent(Rank a, Rank b);     // a link
  void conclude();
  scripted::Peer& peer(Rank other) { return peers_[other]; }
  const std::string& activity() const { return activity_; }

  bool stopped = false;            // dead or frozen: nothing of it runs any more

 private:
  scripted::OutStream& out(Rank to, Tag tag);
  void queue(scripted::OutStream& stream, Rank to, Tag tag);  // its turn anew, after sends or allowance have changed
  void pump();                                      // puts the next frame on the outgoing link
  std::set<scripted::Turn>::iterator next_turn();
  bool is_closed(std::uint64_t operation) const { return closed_.contains(operation); }
  template <class Streams, class Each>
  static void take(Streams& streams, std::uint64_t operation, Each each);

  InprocJob::World& world_;
  const Rank rank_;
  std::vector<scripted::Peer> peers_;
  std::map<scripted::StreamKey, scripted::OutStream> out_;
  std::map<scripted::StreamKey, scripted::InStream> in_;
  std::set<scripted::Turn> turns_;
  bool egress_busy_ = false;
  std::uint32_t frames_ = 0;
  LinkBytes link_bytes_;
  std::unordered_set<std::uint64_t> timers_;
  ClosedOperations closed_{scripted::kClosedRemembered};
  Failure failure_;
  Losses losses_;
  std::vector<Failure> lost_;      // by rank
  std::vector<std::function<void(const Failure&)>> failure_handlers_;
  std::vector<std::function<void(Rank, const Failure&)>> loss_handlers_;
  std::string activity_;
};

}  // namespace shoal::net
