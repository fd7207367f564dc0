// The receiving half of a peer: bytes go straight to the receive that waits for them, or to a bounded store; what was given stays
// where it lies.
#include <algorithm>
#include <cstring>

#include "shoal/net/peer.h"

namespace shoal::net {
namespace {

constexpr std::uint64_t kUnexpected = 4 * 1024 * 1024;  // bytes of one peer that nobody has asked for
constexpr std::uint64_t kUnexpectedGiven = 256 * 1024 * 1024;  // that lie in its own memory
constexpr std::size_t kDrain = 64 * 1024;

}  // namespace

Peer::ReceiveStream& Peer::incoming_stream(Tag tag) {
  const auto [found, made] = in_.try_emplace(tag);
  if (made) {
    found->second.demand.peer = rank_;
    found->second.demand.tag = tag;
  }
  return found->second;
}

void Peer::receive(Tag tag, Priority priority, std::span<std::byte> into, std::shared_ptr<Body> body, Done done) {
  sweep(in_, in_limit_);
  ReceiveStream& stream = incoming_stream(tag);
  Demand& demand = stream.demand;
  if (!demand.queued && stream.items.empty()) demand.order = {priority, owner_.next_arrival()};
  stream.items.push_back({into, std::move(body), std::move(done)});
  owner_.loop().open_work(1);
  credit().posted(demand, into.size());
  take_unexpected(stream);
  if (demand.queued) owner_.loop().chore(owner_.grants());
}

void Peer::take_unexpected(ReceiveStream& stream) {
  while (!stream.unexpected.empty() && !stream.items.empty()) {
    Chunk& chunk = stream.unexpected.front();
    const ReceiveItem& item = stream.items.front();
    const std::span some(chunk.bytes + chunk.begin, std::min(chunk.end - chunk.begin, item.into.size()));
    const std::size_t size = some.size();
    if (!item.body || !chunk.loan || !item.body->keep(some, item.into, chunk.loan)) {
      if (item.body) item.body->copy();
      std::memcpy(item.into.data(), some.data(), size);
    }
    chunk.begin += size;
    unexpected_like(chunk) -= size;
    if (chunk.eager) consumed_eager(size);
    if (chunk.begin == chunk.end) stream.unexpected.pop_front();
    fill(stream, size);
  }
}

// `bytes` have been written to the receives in front.
void Peer::fill(ReceiveStream& stream, std::size_t bytes) {
  while (bytes > 0) {
    ReceiveItem& item = stream.items.front();
    const std::size_t size = std::min(bytes, item.into.size());
    item.into = item.into.subspan(size);
    bytes -= size;
    if (!item.into.empty()) return;
    owner_.loop().open_work(-1);
    owner_.loop().complete(std::move(item.done), nullptr);
    stream.items.pop_front();
  }
}

void Peer::consumed_eager(std::size_t bytes) {
  consumed_ += bytes;
  if (tell_consumed_ || consumed_ - std::max(consumed_told_, consumed_carried_) >= kEagerTold) pump();
}

bool Peer::data_begins(wire::Channel channel, const wire::Header& header) {
  Incoming& incoming = incoming_[static_cast<int>(channel)];
  incoming = {.header = header, .dropped = lost_ || owner_.is_closed(header.tag.operation), .left = header.length, .began = {}};
  if (Events::local().enabled()) incoming.began = steady_now();
  if (!on_consumed(header.consumed)) return false;
  if (incoming.dropped) return true;
  sweep(in_, in_limit_);
  ReceiveStream& stream = incoming_stream(header.tag);
  if (stream.demand.received != static_cast<std::int64_t>(header.offset)) credit().shift(stream.demand, header.offset);
  return true;
}

std::size_t Peer::plan(wire::Channel channel, std::span<iovec> into) {
  Incoming& incoming = incoming_[static_cast<int>(channel)];
  std::size_t left = incoming.left, count = 0;
  incoming.into_chunk = false;
  if (incoming.dropped) {
    drain_.resize(kDrain);
    into[0] = {drain_.data(), std::min(left, drain_.size())};
    return 1;
  }
  ReceiveStream& stream = incoming_stream(incoming.header.tag);
  for (ReceiveItem& item : stream.items) {
    if (left == 0 || count == into.size()) return count;
    const std::size_t size = std::min(left, item.into.size());
    if (item.body) item.body->copy();
    into[count++] = {item.into.data(), size};
    left -= size;
  }
  if (count > 0 || left == 0) return count;
  const bool urgent = incoming.header.cls == Class::urgent;
  if (stream.unexpected.empty() || stream.unexpected.back().size == stream.unexpected.back().end ||
      stream.unexpected.back().urgent != urgent) {
    auto own = std::make_unique_for_overwrite<std::byte[]>(left);
    const std::byte* const bytes = own.get();
    stream.unexpected.push_back({std::move(own), bytes, nullptr, 0, 0, left, incoming.header.eager, urgent});
  }
  Chunk& chunk = stream.unexpected.back();
  incoming.into_chunk = true;
  into[0] = {chunk.own.get() + chunk.end, std::min(left, chunk.size - chunk.end)};
  return 1;
}

bool Peer::keep(std::span<const std::byte> payload, Loan loan) {
  Incoming& incoming = incoming_[static_cast<int>(wire::Channel::memory)];
  incoming.into_chunk = false;
  if (incoming.dropped) return false;
  ReceiveStream& stream = incoming_stream(incoming.header.tag);
  if (stream.items.empty()) {
    incoming.into_chunk = true;
    stream.unexpected.push_back({nullptr, payload.data(), std::move(loan), 0, 0, payload.size(), incoming.header.eager, false});
    return true;
  }
  if (!stream.items.front().body) return false;
  const ReceiveItem& item = stream.items.front();
  return payload.size() <= item.into.size() && item.body->keep(payload, item.into, std::move(loan));
}

void Peer::took(wire::Channel channel, std::size_t bytes) {
  Incoming& incoming = incoming_[static_cast<int>(channel)];
  incoming.left -= bytes;
  received_.fetch_add(bytes, std::memory_order_relaxed);
  const Instant now = steady_now();
  if (channel == wire::Channel::bulk) {
    LinkBytes& all = owner_.link_bytes();
    const std::uint32_t packed = incoming.header.packed;
    all.received += packed == 0 ? bytes : incoming.left == 0 ? packed : 0;
    if (incoming.left == 0) trains_in_.frame(now, incoming.header.wire_bytes(), incoming.header.follows, bulk_ && bulk_->found_empty(), all.received);
  }
  if (incoming.left == 0 && incoming.began != Instant{} && incoming.header.cls != Class::urgent) {
    Events::local().record({.kind = EventKind::received, .begin = incoming.began, .end = now, .step = -1,
                            .peer = static_cast<std::int32_t>(rank_),
                            .value = static_cast<double>(incoming.header.wire_bytes()), .name = 0});
  }
  if (incoming.dropped) {
    if (incoming.header.eager) consumed_eager(bytes);
    return;
  }
  ReceiveStream& stream = incoming_stream(incoming.header.tag);
  credit().arrived(stream.demand, bytes, now);
  if (incoming.left == 0 && incoming.header.dry) credit().dry(stream.demand);
  if (credit().waiting()) owner_.loop().chore(owner_.grants());
  if (!incoming.into_chunk) {
    fill(stream, bytes);
    if (incoming.header.eager) consumed_eager(bytes);
    return;
  }
  Chunk& chunk = stream.unexpected.back();
  chunk.end += bytes;
  std::uint64_t& kept = unexpected_like(chunk);
  kept += bytes;
  const std::uint64_t most = chunk.loan ? kUnexpectedGiven : kUnexpected;
  if (kept > most) {
    const Tag tag = incoming.header.tag;
    owner_.broke_rules(rank_, "sent more than " + std::to_string(most >> 20) + " MB that nobody here asked for, last of operation " +
                                  std::to_string(tag.operation) + " lane " + std::to_string(tag.lane));
  }
}

bool Peer::message(wire::Channel, const wire::Header& header, std::span<const std::byte> payload) {
  if (lost_) return true;                           // it may live, and not know yet
  switch (header.kind) {
    case wire::Kind::request:
      on_request(header);
      return true;
    case wire::Kind::dry:
      on_dry(header);
      return true;
    case wire::Kind::credit:
      if (const auto credit = wire::decode_credit(payload)) return on_credit(*credit), true;
      break;
    case wire::Kind::heartbeat:
      if (const auto beat = wire::decode_heartbeat(payload)) return on_heartbeat(*beat), true;
      break;
    case wire::Kind::goodbye:
      owner_.said_goodbye(rank_);
      return true;
    case wire::Kind::failure:
    case wire::Kind::lost:
    case wire::Kind::silent:
      if (const auto notice = wire::decode_notice(payload)) return owner_.told(rank_, header.kind, *notice), true;
      break;
    case wire::Kind::mailbox:
      if (on_mailbox(payload)) return true;
      break;
    case wire::Kind::segment:
      if (on_segment(payload)) return true;
      break;
    case wire::Kind::attached:
      if (on_attached(payload)) return true;
      break;
    case wire::Kind::data:
    case wire::Kind::returned: break;  // the connection takes these itself
  }
  owner_.broke_rules(rank_, "sent a message that cannot be read");
  return false;
}

void Peer::on_request(const wire::Header& header) {
  tell_consumed_ = true;
  pump();
  if (owner_.is_closed(header.tag.operation)) return;
  sweep(in_, in_limit_);
  ReceiveStream& stream = incoming_stream(header.tag);
  credit().asked(stream.demand, header.offset);
  if (stream.demand.queued) owner_.loop().chore(owner_.grants());
}

void Peer::on_dry(const wire::Header& header) {
  const auto found = in_.find(header.tag);
  if (found == in_.end()) return;
  credit().dry(found->second.demand);
  if (credit().waiting()) owner_.loop().chore(owner_.grants());
}

void Peer::on_heartbeat(const wire::Heartbeat& beat) {
  const Instant now = steady_now();
  echo_ns_ = beat.sent_ns;
  echo_at_ = now;
  if (beat.echo_ns != 0) {
    const Nanoseconds trip = now.time_since_epoch() - Nanoseconds(beat.echo_ns) - Nanoseconds(beat.held_ns);
    if (trip > Nanoseconds(0)) round_trip_s_ = Seconds(trip).count();
  }
  const std::lock_guard lock(told_mutex_);
  activity_ = beat.activity;
}

void Peer::wire_bytes(std::size_t sent, std::size_t received) {
  wire_sent_.fetch_add(sent, std::memory_order_relaxed);
  if (received == 0) return;
  wire_received_.fetch_add(received, std::memory_order_relaxed);
  owner_.heard(rank_);
}

}  // namespace shoal::net
