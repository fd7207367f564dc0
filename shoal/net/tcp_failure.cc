// What a transport makes of members that are lost, silent or give up.
#include <cstdio>

#include "shoal/core/text.h"
#include "shoal/net/tcp_transport.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

// A peer's bulk connection may break before the news on its control connection has been read.
constexpr Nanoseconds kNewsDelay = 200ms;

bool means_silence(std::error_code why) {
  return why == std::errc::timed_out || why == std::errc::host_unreachable || why == std::errc::network_unreachable ||
         why == std::errc::network_down;
}

}  // namespace

Failure TcpTransport::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TcpTransport::on_failure(std::function<void(const Failure&)> handler) {
  if (const Failure failed = failure()) return loop_.complete(std::move(handler), failed);
  handlers_.push_back(std::move(handler));
}

Failure TcpTransport::lost(Rank peer) const {
  const std::lock_guard lock(mutex_);
  return lost_[peer];
}

void TcpTransport::on_lost(std::function<void(Rank, const Failure&)> handler) {
  for (Rank peer = 0; peer < size_; ++peer) {
    if (const Failure why = lost(peer)) loop_.complete([handler, peer](const Failure& reason) { handler(peer, reason); }, why);
  }
  loss_handlers_.push_back(std::move(handler));
}

void TcpTransport::fail(const Error& why) { end(std::make_shared<Error>(why), rank_); }

void TcpTransport::doing(std::string activity) {
  if (activity.size() > wire::kMaxActivity) activity.resize(wire::kMaxActivity);
  const std::lock_guard lock(mutex_);
  activity_ = std::move(activity);
}

std::string TcpTransport::own_activity() {
  const std::lock_guard lock(mutex_);
  return activity_;
}

LinkStats TcpTransport::link(Rank peer) const { return peer < size_ && peers_[peer] ? peers_[peer]->stats() : LinkStats{}; }

std::string TcpTransport::member(Rank rank) const { return "rank " + std::to_string(rank) + " (" + hosts_.at(rank) + ")"; }

std::string TcpTransport::last_did(Rank rank) const {
  const std::string activity = peers_[rank] ? peers_[rank]->activity() : std::string();
  return activity.empty() ? "" : "; it last did: " + activity;
}

std::shared_ptr<const Error> TcpTransport::left_error(Rank peer) const {
  return std::make_shared<Error>(Code::peer_lost, member(peer) + " left the job" + last_did(peer), "",
                                 "what is open here needs every member; to train on uneven data: model.join()");
}

std::string TcpTransport::stalled() const {
  return "it is heard, and one of its connections has acknowledged nothing for " + show_seconds(Seconds(stalls_after_ * limits_.heartbeat).count());
}

std::string TcpTransport::not_heard() const { return "not heard for " + show_seconds(Seconds(limits_.dead).count()); }

void TcpTransport::lose(Rank peer, const std::string& how) {
  const auto why = std::make_shared<Error>(Code::peer_lost, member(peer) + " was lost: " + how + last_did(peer));
  goes_on(on_peer_lost_) ? go_on_without(peer, why) : end(why, peer);
}

// Where others go on all agree whose links are no good (losses.h).
void TcpTransport::give_up(Rank peer, const std::string& how) {
  if (failure() || leaving_ || losses_.lost(peer)) return;
  if (!goes_on(on_peer_lost_)) return lose(peer, how);
  health_.left(peer);
  tell_others(wire::Kind::silent, peer, Error(Code::peer_lost, how));
  note_silent(rank_, peer, how);
}

void TcpTransport::note_silent(Rank a, Rank b, const std::string& how) {
  losses_.silent(a, b, steady_now());
  for (const Rank end : {a, b}) why_silent_.try_emplace(end, how);
  if (losses_.due()) loop_.at(*losses_.due(), [self = shared_from_this()] { self->conclude(); });
}

void TcpTransport::conclude() {
  if (failure() || leaving_) return;
  for (const Rank gone : losses_.conclude(steady_now())) {
    if (gone == rank_) return given_up("itself: its links to others are silent");
    go_on_without(gone, std::make_shared<Error>(Code::peer_lost, member(gone) + " was lost: " + why_silent_[gone] + last_did(gone)));
  }
}

void TcpTransport::go_on_without(Rank peer, const Failure& why) {
  losses_.lose(peer);
  {
    const std::lock_guard lock(mutex_);
    if (lost_[peer]) return;
    lost_[peer] = why;
  }
  std::fprintf(stderr, "shoal: %s; the others go on\n", why->fact().c_str());
  health_.left(peer);
  peers_[peer]->lose(why);
  tell_others(wire::Kind::lost, peer, *why);
  for (const auto& handler : loss_handlers_) loop_.complete([handler, peer](const Failure& reason) { handler(peer, reason); }, why);
  sharing_changed();  // it does not say any more whether it shares memory
}

void TcpTransport::given_up(const std::string& by_whom) {
  end(std::make_shared<Error>(Code::peer_lost, "this member (" + member(rank_) + ") was given up by " + by_whom), rank_);
}

// Everyone tells everyone: whoever knew first may be lost in the middle of telling.
void TcpTransport::tell_others(wire::Kind kind, Rank culprit, const Error& why) {
  const std::string reason = why.where().empty() ? why.fact() : why.where() + ": " + why.fact();
  for (const auto& peer : peers_) {
    if (peer) peer->tell(kind, wire::encode(wire::Notice{culprit, why.code(), reason}));
  }
}

void TcpTransport::end(const std::shared_ptr<const Error>& why, Rank culprit) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = why;
  }
  failed_ = true;
  loop_.progress();
  for (const auto& peer : peers_) {
    if (peer) peer->fail_all(why);
  }
  tell_others(goes_on(on_peer_lost_) && culprit == rank_ && why->code() == Code::peer_lost ? wire::Kind::lost : wire::Kind::failure, culprit, *why);
  for (auto& handler : handlers_) loop_.complete(std::move(handler), why);
  handlers_.clear();
}

void TcpTransport::told(Rank peer, wire::Kind kind, const wire::Notice& notice) {
  if (notice.culprit >= size_) return broke_rules(peer, "named a member that does not exist");
  if (kind == wire::Kind::failure) return gave_up(peer, notice);
  if (!goes_on(on_peer_lost_)) return broke_rules(peer, "goes on without a member, and this one does not");
  if (failure() || leaving_) return;
  if (kind == wire::Kind::silent) {
    note_silent(peer, notice.culprit, notice.reason);
  } else if (notice.culprit == rank_) {
    given_up(member(peer) + ": " + notice.reason);
  } else {
    // Who found itself out says so of itself, often before others have concluded it.
    const std::string words = notice.culprit == peer ? member(peer) + " was lost: it says: " + notice.reason : notice.reason;
    go_on_without(notice.culprit, std::make_shared<Error>(Code::peer_lost, words));
  }
}

void TcpTransport::gave_up(Rank peer, const wire::Notice& notice) {
  const Code code = notice.code == Code::mismatch ? Code::mismatch : Code::peer_lost;
  std::string words = notice.reason;
  if (notice.culprit == rank_) {
    words = "this member (" + member(rank_) + ") was given up by " + member(peer) + ": " + notice.reason;
  } else if (notice.culprit == peer) {
    words = member(peer) + " gave up: " + notice.reason + last_did(peer);
  }
  end(std::make_shared<Error>(code, words), notice.culprit);
}

void TcpTransport::broke_rules(Rank peer, const std::string& how) {
  end(std::make_shared<Error>(Code::mismatch, member(peer) + " " + how), peer);
}

void TcpTransport::said_goodbye(Rank peer) {
  peers_[peer]->gone = true;
  health_.left(peer);
}

void TcpTransport::connection_lost(Rank rank, wire::Channel channel, std::error_code why) {
  Peer& peer = *peers_[rank];
  if (channel == wire::Channel::bulk) peer.bulk_ended = true;
  if (leaving_ || failure() || losses_.lost(rank)) return;
  if (peer.gone) {
    if (peer.bulk_ended) peer.fail_receives(left_error(rank));
    return;
  }
  if (why == std::errc::protocol_error) return broke_rules(rank, "sent bytes that are no frame of ours");
  if (means_silence(why)) {  // health knows by then whether it is silent altogether, or this member cut off
    loop_.at(steady_now() + limits_.dead + 2 * limits_.heartbeat, [self = shared_from_this(), rank, said = why.message()] {
      if (!self->peers_[rank]->gone) self->give_up(rank, "its connection ended: " + said);
    });
    return;
  }
  if (channel == wire::Channel::control) return lose(rank, "connection closed");
  loop_.at(steady_now() + kNewsDelay, [self = shared_from_this(), rank] {
    if (self->leaving_ || self->failure() || self->losses_.lost(rank)) return;
    Peer& late = *self->peers_[rank];
    if (late.gone) {
      late.fail_receives(self->left_error(rank));
    } else {
      self->lose(rank, "connection closed");
    }
  });
}

}  // namespace shoal::net
