#include "shoal/net/tcp_transport.h"

#include <algorithm>
#include <cstdio>

#include "shoal/core/event.h"
#include "shoal/core/text.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kLeavePatience = 2s;   // for what is queued at goodbye
constexpr Nanoseconds kFailedPatience = 200ms;
constexpr Nanoseconds kLeavePoll = 1ms;

}  // namespace

TcpTransport::TcpTransport(Rank rank, Rank size, const JoinOptions& options)
    : loop_(Loop::shared()),
      rank_(rank),
      size_(size),
      limits_{options.heartbeat, options.suspect, options.dead},
      stalls_after_(static_cast<std::uint32_t>(std::max<Nanoseconds::rep>(1, options.stalled / options.heartbeat))),
      on_peer_lost_(options.on_peer_lost.value_or(OnPeerLost::fail)),
      hosts_(size),
      memory_connections_(loop_),
      packer_(options.packing.value_or(Packing::automatic)),
      arena_(options.shared_memory.value_or(true) ? std::make_shared<Arena>() : nullptr),
      health_(size, rank, limits_, steady_now()),
      losses_(size, 2 * options.heartbeat),
      lost_(size) {
  local_credit_.without_link();
  for (Rank peer = 0; peer < size; ++peer) {
    peers_.push_back(peer == rank ? nullptr : std::make_unique<Peer>(*this, peer));
  }
}

TcpTransport::~TcpTransport() { loop_.forget(*this); }

bool TcpTransport::wants(Rank peer, wire::Channel channel) const {
  return peer < size_ && peer != rank_ && !closed_down_ && !peers_[peer]->has(channel);
}

void TcpTransport::adopt(Rank peer, wire::Channel channel, Socket socket) {
  set_connection_options(socket);
  health_.heard(peer, steady_now());
  all_local_ = all_local_ && over_loopback(socket);
  peers_[peer]->adopt(channel, std::move(socket));
  if (all_local_ && connected()) credit_.without_link();
}

bool TcpTransport::connected() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer || peer->connected(); });
}

double TcpTransport::sending_rate() const {
  double all = 0;
  for (const auto& peer : peers_) all += peer ? peer->sending_rate() : 0;
  return all;
}

void TcpTransport::share(const std::vector<Rank>& neighbours) {
  neighbours_ = neighbours;
  sharing_ = true;
  for (const Rank peer : neighbours_) peers_[peer]->share();
  sharing_changed();
}

void TcpTransport::sharing_changed() {
  shared_ = sharing_ && std::all_of(neighbours_.begin(), neighbours_.end(), [&](Rank peer) { return peers_[peer]->sharing_settled() || lost(peer); });
  loop_.progress();
}

std::shared_ptr<std::byte> TcpTransport::lendable(std::size_t bytes) {
  const bool somebody_reads = std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer && peer->stats().shared_memory; });
  std::byte* const memory = arena_ && somebody_reads ? arena_->allocate(bytes) : nullptr;
  if (!memory) return nullptr;
  return {memory, [arena = arena_](std::byte* freed) { arena->free(freed); }};
}

void TcpTransport::cannot_share(Rank peer, const std::string& why) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  std::fprintf(stderr, "shoal: no shared memory with %s of this host, TCP in its place: %s; a container must allow memfd_create and unix "
               "sockets (SHOAL_SHARED_MEMORY=0 asks for TCP)\n", member(peer).c_str(), why.c_str());
}

void TcpTransport::begin() {
  if (size_ == 1 || closed_down_ || failure()) return;
  tick();
}

void TcpTransport::tick() {
  if (failure()) return;
  heartbeat_timer_ = loop_.at(steady_now() + limits_.heartbeat, [self = shared_from_this()] { self->tick(); });
  const std::string activity = own_activity();
  Nanoseconds slowest{};
  std::vector<Rank> stalled_peers;
  for (const auto& peer : peers_) {
    if (!peer || peer->gone || losses_.lost(peer->rank())) continue;
    if (!peer->connected()) health_.heard(peer->rank(), steady_now());  // joining has a deadline of its own
    peer->heartbeat(steady_now(), activity);
    peer->ask_for_credit();
    if (peer->stalled_heartbeats() == stalls_after_) stalled_peers.push_back(peer->rank());
    slowest = std::max(slowest, peer->shortest_round_trip());
    credit_.round_trip(peer->rank(), std::chrono::duration_cast<Nanoseconds>(Seconds(peer->stats().round_trip)));
  }
  credit_.round_trip(slowest);
  const Health::Verdict verdict = health_.tick(steady_now());
  for (const Rank suspect : verdict.suspects) {
    const std::string said = member(suspect) + " has not been heard for " + show_seconds(Seconds(limits_.suspect).count());
    std::fprintf(stderr, "shoal: %s\n", said.c_str());
    const Instant now = steady_now();
    Events::local().record({.kind = EventKind::note, .begin = now, .end = now, .step = -1, .peer = static_cast<std::int32_t>(suspect),
                            .value = 0, .name = Events::local().intern(said)});
  }
  if (verdict.cut_off) {
    return end(std::make_shared<Error>(Code::peer_lost, "this member (" + member(rank_) + ") is cut off: it hears no other member"), rank_);
  }
  for (const Rank dead : verdict.dead) give_up(dead, not_heard());
  for (const Rank peer : stalled_peers) give_up(peer, stalled());
}

// --- streams

void TcpTransport::send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) {
  send(to, tag, priority, bytes, {}, std::move(done));
}

void TcpTransport::give(Rank to, Tag tag, Priority priority, Bytes bytes, Done done) {
  const std::span<const std::byte> all = bytes;
  send(to, tag, priority, all, std::move(bytes), std::move(done));
}

void TcpTransport::receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) {
  receive(from, tag, priority, into, nullptr, std::move(done));
}

void TcpTransport::take(Rank from, Tag tag, Priority priority, std::size_t size, Taken done) {
  const auto body = std::make_shared<Body>(size);
  receive(from, tag, priority, body->own(), body, [body, done = std::move(done)](const Failure& why) { done(why, why ? Bytes() : body->all()); });
}

void TcpTransport::send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Bytes given, Done done) {
  if (const Failure failed = failure()) return loop_.complete(std::move(done), failed);
  if (bytes.empty()) return loop_.complete(std::move(done), nullptr);
  if (to >= size_ || to == rank_ || (priority.cls == Class::urgent && bytes.size() > kUrgentLimit)) {
    return loop_.complete(std::move(done), std::make_shared<Error>(Code::internal, "send of " + std::to_string(bytes.size()) +
                                                                                      " bytes to rank " + std::to_string(to) +
                                                                                      " breaks the transport's rules"));
  }
  if (losses_.lost(to)) return loop_.complete(std::move(done), lost(to));
  if (peers_[to]->gone) return loop_.complete(std::move(done), left_error(to));
  peers_[to]->send(tag, priority, bytes, std::move(given), std::move(done));
}

void TcpTransport::receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, std::shared_ptr<Body> body, Done done) {
  if (const Failure failed = failure()) return loop_.complete(std::move(done), failed);
  if (into.empty()) return loop_.complete(std::move(done), nullptr);
  if (from >= size_ || from == rank_) {
    return loop_.complete(std::move(done), std::make_shared<Error>(Code::internal, "receive from rank " + std::to_string(from) +
                                                                                      " breaks the transport's rules"));
  }
  if (losses_.lost(from)) return loop_.complete(std::move(done), lost(from));
  Peer& peer = *peers_[from];
  peer.receive(tag, priority, into, std::move(body), std::move(done));
  if (peer.gone && peer.bulk_ended) peer.fail_receives(left_error(from));
}

void TcpTransport::close(std::uint64_t operation, const Failure& why) {
  closed_.add(operation);
  // An orderly end has no cause; yet whoever still waits must not take it for success.
  const Failure cause = why ? why : std::make_shared<const Error>(Code::cancelled, "the operation was closed");
  for (const auto& peer : peers_) {
    if (peer) peer->close_operation(operation, cause);
  }
}

void TcpTransport::run_chore() {
  for (const Granted& granted : local_credit_.collect(steady_now())) peers_[granted.peer]->add_grant(granted);
  for (const Granted& granted : credit_.collect(steady_now())) peers_[granted.peer]->add_grant(granted);
  if (credit_timer_ != 0 || closed_down_ || !credit_.may_come_to_stand()) return;
  credit_timer_ = loop_.at(steady_now() + credit_.stale(), [self = shared_from_this()] {
    self->credit_timer_ = 0;
    self->run_chore();
  });
}

// --- leaving

void TcpTransport::leave(std::function<void()> gone) {
  leaving_ = true;
  loop_.cancel(heartbeat_timer_);
  const bool failed = failure() != nullptr;
  const std::string activity = own_activity();
  for (const auto& peer : peers_) {
    if (!peer || failed || peer->gone || losses_.lost(peer->rank())) continue;
    peer->heartbeat(steady_now(), activity);  // who still waits for this member hears what it did last
    peer->say_goodbye();
  }
  check_gone(steady_now() + (failed ? kFailedPatience : kLeavePatience), std::move(gone));
}

void TcpTransport::check_gone(Instant deadline, std::function<void()> gone) {
  const bool drained = std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return !peer || peer->drained();
  });
  if (!drained && steady_now() < deadline) {
    loop_.at(steady_now() + kLeavePoll, [self = shared_from_this(), deadline, gone = std::move(gone)]() mutable {
      self->check_gone(deadline, std::move(gone));
    });
    return;
  }
  closed_down_ = true;
  if (credit_timer_ != 0) loop_.cancel(credit_timer_);
  const auto why = std::make_shared<Error>(Code::cancelled, "the job is closing");
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = why;
  }
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->fail_all(why);
    peer->close();
  }
  handlers_.clear();
  loop_.complete([gone = std::move(gone)](const Failure&) { gone(); }, nullptr);
}

}  // namespace shoal::net
