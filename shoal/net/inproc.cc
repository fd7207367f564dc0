#include "shoal/net/inproc.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "shoal/core/seed.h"

namespace shoal::net {
namespace {

constexpr Nanoseconds kSilence = std::chrono::seconds(5);  // of the scripted clock, until a silent peer is lost
constexpr std::size_t kHeader = 32;                        // wire bytes that a frame has beside its payload
constexpr std::size_t kClosedRemembered = 1 << 16;         // operations whose late bytes are known to be stale
constexpr std::uint32_t kBackgroundShare = 16;             // one frame in so many, when background waits
constexpr Rank kNobody = std::numeric_limits<Rank>::max(); // the network itself

enum Connection : std::uint8_t { control, bulk };

struct Event {
  Instant when;
  std::uint64_t sequence;  // ties run in the order in which they were scheduled
  Rank member;             // does not run once this one is dead or frozen
  std::function<void()> fn;
};
struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return std::tie(a.when, a.sequence) > std::tie(b.when, b.sequence);
  }
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
  Instant last_arrival[2];         // per connection: nothing overtakes inside one
  bool cut = false;
};

}  // namespace

class InprocMember;

struct InprocJob::World {
  ScriptedNetwork network;
  Instant now{};
  std::uint64_t sequence = 0, draws = 0;
  std::vector<Event> events;       // a heap by Later
  Rank running = kNobody;
  std::vector<std::unique_ptr<InprocMember>> members;

  std::uint64_t schedule(Instant when, Rank member, std::function<void()> fn) {
    events.push_back({std::max(when, now), ++sequence, member, std::move(fn)});
    std::push_heap(events.begin(), events.end(), Later{});
    return sequence;
  }
  Nanoseconds delay() {
    const double span = static_cast<double>((network.delay_max - network.delay_min).count());
    const double drawn = span * uniform(network.seed, ++draws, 0, 0);
    return network.delay_min + Nanoseconds(static_cast<std::int64_t>(drawn));
  }
  Nanoseconds time_on_link(std::size_t bytes) const {
    if (network.rate <= 0) return Nanoseconds(0);
    return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(bytes) / network.rate * 1e9));
  }
  bool step();                     // one event; false when none is left
  // A message from one member to another; `arrive` runs there, in order inside the connection.
  void travel(Rank from, Rank to, Connection connection, std::size_t bytes, std::function<void()> arrive);
  void found_lost(Rank finder, Rank lost, const std::string& why);
  void tell_all(Rank teller, const Failure& why);
};

class InprocMember final : public Transport {
 public:
  InprocMember(InprocJob::World& world, Rank rank, Rank size) : world_(world), rank_(rank), peers_(size) {}

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
    world_.tell_all(rank_, shared);
    end(shared);
  }
  void doing(std::string activity) override { activity_ = std::move(activity); }
  LinkStats link(Rank peer) const override { return peers_.at(peer).stats; }
  std::string host(Rank peer) const override { return "member" + std::to_string(peer); }

  // What the world does to a member.
  void grant(Rank to, Tag tag, std::uint64_t bytes);
  void deliver(Rank from, Tag tag, std::span<const std::byte> bytes);
  void end(const Failure& why);
  Peer& peer(Rank other) { return peers_[other]; }
  const std::string& activity() const { return activity_; }

  bool stopped = false;            // dead or frozen: nothing of it runs any more
  Instant ingress_free{};          // when its incoming link is idle

 private:
  OutStream& out(Rank to, Tag tag);
  void queue(OutStream& stream, Rank to, Tag tag);  // its turn anew, after sends or allowance have changed
  void pump();                                      // puts the next frame on the outgoing link
  std::set<Turn>::iterator next_turn();
  bool is_closed(std::uint64_t operation) const { return closed_.count(operation) > 0; }
  template <class Streams, class Each>
  static void take(Streams& streams, std::uint64_t operation, Each each);

  InprocJob::World& world_;
  const Rank rank_;
  std::vector<Peer> peers_;
  std::map<StreamKey, OutStream> out_;
  std::map<StreamKey, InStream> in_;
  std::set<Turn> turns_;
  bool egress_busy_ = false;
  std::uint32_t frames_ = 0;
  std::unordered_set<std::uint64_t> timers_, closed_;
  std::deque<std::uint64_t> closed_order_;
  Failure failure_;
  std::vector<std::function<void(const Failure&)>> failure_handlers_;
  std::string activity_;
};

// --- the world

bool InprocJob::World::step() {
  if (events.empty()) return false;
  std::pop_heap(events.begin(), events.end(), Later{});
  Event event = std::move(events.back());
  events.pop_back();
  now = event.when;
  if (event.member != kNobody && members[event.member]->stopped) return true;
  const Rank before = std::exchange(running, event.member);
  event.fn();
  running = before;
  return true;
}

void InprocJob::World::travel(Rank from, Rank to, Connection connection, std::size_t bytes, std::function<void()> arrive) {
  Peer& way = members[from]->peer(to);
  way.stats.wire_sent += bytes + kHeader;
  Instant& last = way.last_arrival[connection];
  last = std::max(last, now + delay());
  schedule(last, kNobody, [this, from, to, bytes, arrive = std::move(arrive)]() mutable {
    if (members[from]->peer(to).cut) return;
    members[to]->peer(from).stats.wire_received += bytes + kHeader;
    Instant& free = members[to]->ingress_free;
    free = std::max(free, now) + time_on_link(bytes);
    schedule(free, to, std::move(arrive));
  });
}

void InprocJob::World::found_lost(Rank finder, Rank lost, const std::string& why) {
  InprocMember& member = *members[finder];
  if (member.stopped || member.failure()) return;
  bool alone = members.size() > 2;
  for (Rank other = 0; other < members.size(); ++other) alone = alone && (other == finder || member.peer(other).cut);
  std::string fact;
  if (alone) {
    fact = "this member (rank " + std::to_string(finder) + ") is cut off: it heard nobody for 5 s";
  } else {
    const std::string& activity = members[lost]->activity();
    fact = "rank " + std::to_string(lost) + " (" + member.host(lost) + ") was lost: " + why;
    if (!activity.empty()) fact += "; it last did: " + activity;
  }
  const auto failure = std::make_shared<const Error>(Code::peer_lost, fact);
  tell_all(finder, failure);
  member.end(failure);
}

void InprocJob::World::tell_all(Rank teller, const Failure& why) {
  for (Rank other = 0; other < members.size(); ++other) {
    if (other != teller) travel(teller, other, control, 0, [this, other, why] { members[other]->end(why); });
  }
}

// --- a member's streams

OutStream& InprocMember::out(Rank to, Tag tag) {
  const auto [found, added] = out_.try_emplace({tag, to});
  if (added) found->second.allowed = world_.network.eager;
  return found->second;
}

void InprocMember::queue(OutStream& stream, Rank to, Tag tag) {
  if (stream.turn) turns_.erase(*stream.turn);
  stream.turn.reset();
  if (stream.sends.empty()) return;
  const Send& head = stream.sends.front();
  if (stream.allowed == 0 && head.priority.cls != Class::urgent) return;
  stream.turn = Turn{head.priority.cls, head.priority.value, head.priority.iteration, head.sequence, to, tag};
  turns_.insert(*stream.turn);
  if (!std::exchange(egress_busy_, true)) post([this] { pump(); });
}

void InprocMember::send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) {
  if (stopped) return;
  if (failure_ || bytes.empty()) return post([done = std::move(done), why = failure_] { done(why); });
  OutStream& stream = out(to, tag);
  stream.sends.push_back({bytes, priority, ++world_.sequence, std::move(done)});
  queue(stream, to, tag);
}

std::set<Turn>::iterator InprocMember::next_turn() {
  if (frames_ % kBackgroundShare == 0) {
    const auto background = turns_.lower_bound(Turn{Class::background, 0, 0, 0, 0, {}});
    if (background != turns_.end() && turns_.begin()->cls != Class::urgent) return background;
  }
  return turns_.begin();
}

void InprocMember::pump() {
  if (turns_.empty()) {
    egress_busy_ = false;
    return;
  }
  ++frames_;
  const Turn turn = *next_turn();
  OutStream& stream = out_.at({turn.tag, turn.peer});
  Send& head = stream.sends.front();
  std::size_t size = std::min(head.bytes.size(), world_.network.frame);
  if (turn.cls != Class::urgent) {
    size = std::min<std::size_t>(size, stream.allowed);
    stream.allowed -= size;
  }
  std::vector<std::byte> frame(head.bytes.begin(), head.bytes.begin() + static_cast<std::ptrdiff_t>(size));
  head.bytes = head.bytes.subspan(size);
  Done done;
  if (head.bytes.empty()) {
    done = std::move(head.done);
    stream.sends.pop_front();
  }
  queue(stream, turn.peer, turn.tag);
  // The rest happens when the frame's last byte has left; a member that dies before then has not sent it.
  world_.schedule(world_.now + world_.time_on_link(size), rank_,
                  [this, turn, frame = std::move(frame), done = std::move(done)]() mutable {
    peers_[turn.peer].stats.sent += frame.size();
    const Connection connection = turn.cls == Class::urgent ? control : bulk;
    const std::size_t bytes = frame.size();
    InprocMember& receiver = *world_.members[turn.peer];
    world_.travel(rank_, turn.peer, connection, bytes,
                  [&receiver, from = rank_, tag = turn.tag, frame = std::move(frame)] { receiver.deliver(from, tag, frame); });
    pump();
    if (done) done(failure_);
  });
}

void InprocMember::grant(Rank to, Tag tag, std::uint64_t bytes) {
  if (failure_ || is_closed(tag.operation)) return;
  OutStream& stream = out(to, tag);
  stream.allowed += bytes;
  queue(stream, to, tag);
}

void InprocMember::receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) {
  if (stopped) return;
  if (failure_ || into.empty()) return post([done = std::move(done), why = failure_] { done(why); });
  if (priority.cls != Class::urgent) {
    InprocMember& sender = *world_.members[from];
    world_.travel(rank_, from, control, 0, [&sender, to = rank_, tag, bytes = into.size()] { sender.grant(to, tag, bytes); });
  }
  InStream& stream = in_[{tag, from}];
  stream.receives.push_back({into, std::move(done)});
  if (stream.early.empty()) return;
  // Bytes that came early are taken in an event of their own: no handler runs inside this call.
  post([this, from, tag] {
    const auto found = in_.find({tag, from});
    if (found == in_.end()) return;
    const std::vector<std::byte> early = std::exchange(found->second.early, {});
    deliver(from, tag, early);
  });
}

void InprocMember::deliver(Rank from, Tag tag, std::span<const std::byte> bytes) {
  if (failure_ || is_closed(tag.operation)) return;
  std::vector<Done> full;
  {
    InStream& stream = in_[{tag, from}];
    if (!stream.early.empty()) {  // earlier bytes are still waiting to be taken
      stream.early.insert(stream.early.end(), bytes.begin(), bytes.end());
      bytes = {};
    }
    while (!bytes.empty() && !stream.receives.empty()) {
      Receive& head = stream.receives.front();
      const std::size_t size = std::min(bytes.size(), head.rest.size());
      std::memcpy(head.rest.data(), bytes.data(), size);
      peers_[from].stats.received += size;
      head.rest = head.rest.subspan(size);
      bytes = bytes.subspan(size);
      if (!head.rest.empty()) break;
      full.push_back(std::move(head.done));
      stream.receives.pop_front();
    }
    stream.early.insert(stream.early.end(), bytes.begin(), bytes.end());
  }
  // In their order, one event each: the first may close the operation, and then the others still run once.
  for (Done& done : full) post([done = std::move(done)] { done(nullptr); });
}

template <class Streams, class Each>
void InprocMember::take(Streams& streams, std::uint64_t operation, Each each) {
  auto stream = streams.lower_bound({Tag{operation, 0}, 0});
  while (stream != streams.end() && stream->first.first.operation == operation) {
    each(stream->second);
    stream = streams.erase(stream);
  }
}

void InprocMember::close(std::uint64_t operation, const Failure& why) {
  if (stopped || failure_ || is_closed(operation)) return;
  closed_.insert(operation);
  closed_order_.push_back(operation);
  if (closed_order_.size() > kClosedRemembered) {
    closed_.erase(closed_order_.front());
    closed_order_.pop_front();
  }
  std::vector<Done> waiting;
  take(out_, operation, [&](OutStream& stream) {
    if (stream.turn) turns_.erase(*stream.turn);
    for (Send& send : stream.sends) waiting.push_back(std::move(send.done));
  });
  take(in_, operation, [&](InStream& stream) {
    for (Receive& receive : stream.receives) waiting.push_back(std::move(receive.done));
  });
  for (Done& done : waiting) post([done = std::move(done), why] { done(why); });
}

void InprocMember::end(const Failure& why) {
  if (stopped || failure_) return;
  failure_ = why;
  turns_.clear();
  std::vector<Done> waiting;
  for (auto& [key, stream] : out_) {
    for (Send& send : stream.sends) waiting.push_back(std::move(send.done));
  }
  for (auto& [key, stream] : in_) {
    for (Receive& receive : stream.receives) waiting.push_back(std::move(receive.done));
  }
  out_.clear();
  in_.clear();
  for (auto& handler : std::exchange(failure_handlers_, {})) waiting.push_back(std::move(handler));
  for (auto& handler : waiting) post([handler = std::move(handler), why] { handler(why); });
}

bool InprocMember::drive(const std::function<bool()>& ready, Instant deadline) {
  while (!ready()) {
    if (world_.events.empty() || world_.events.front().when > deadline) {
      world_.now = std::max(world_.now, deadline);
      return ready();
    }
    world_.step();
  }
  return true;
}

// --- the job

InprocJob::InprocJob(Rank size, const ScriptedNetwork& network) : world_(std::make_unique<World>()) {
  world_->network = network;
  for (Rank rank = 0; rank < size; ++rank) world_->members.push_back(std::make_unique<InprocMember>(*world_, rank, size));
}

InprocJob::~InprocJob() = default;

Transport& InprocJob::member(Rank rank) { return *world_->members.at(rank); }

bool InprocJob::run(const std::function<bool()>& until) {
  while (!until || !until()) {
    if (!world_->step()) return !until;
  }
  return true;
}

Instant InprocJob::now() const { return world_->now; }

void InprocJob::at(Nanoseconds after_start, std::function<void()> fn) {
  world_->schedule(Instant{} + after_start, kNobody, std::move(fn));
}

void InprocJob::kill(Rank rank) {
  InprocMember& lost = *world_->members.at(rank);
  if (std::exchange(lost.stopped, true)) return;
  for (Rank other = 0; other < world_->members.size(); ++other) {
    if (other == rank) continue;
    // The close comes after every frame that is still on its way.
    Peer& way = lost.peer(other);
    const Instant drained = std::max(way.last_arrival[control], way.last_arrival[bulk]);
    world_->schedule(drained, kNobody, [this, rank, other] {
      world_->travel(rank, other, control, 0, [this, rank, other] { world_->found_lost(other, rank, "connection closed"); });
    });
  }
}

void InprocJob::cut(Rank a, Rank b) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    world_->members.at(from)->peer(to).cut = true;
    world_->schedule(world_->now + kSilence, from, [this, from, to] { world_->found_lost(from, to, "not heard for 5 s"); });
  }
}

void InprocJob::freeze(Rank rank) {
  if (std::exchange(world_->members.at(rank)->stopped, true)) return;
  for (Rank other = 0; other < world_->members.size(); ++other) {
    if (other == rank) continue;
    world_->schedule(world_->now + kSilence, other, [this, rank, other] { world_->found_lost(other, rank, "not heard for 5 s"); });
  }
}

std::uint64_t InprocJob::bytes_sent(Rank from, Rank to) const { return world_->members.at(from)->link(to).sent; }

}  // namespace shoal::net
