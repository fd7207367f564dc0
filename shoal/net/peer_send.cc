// The sending half of a peer: which stream's frame leaves next, and how long it may be.
#include <algorithm>

#include "shoal/core/packed_words.h"
#include "shoal/net/peer.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

wire::Header message_header(wire::Kind kind, const std::string& payload) {
  wire::Header header;
  header.kind = kind;
  header.length = static_cast<std::uint32_t>(payload.size());
  return header;
}

constexpr Nanoseconds kSendSample = 5ms;
// How late the kernel may wake this process when the socket can take more (a 250 Hz scheduler: 4 ms): what lies
// unsent in the socket must last so long.
constexpr Seconds kRefill = 2ms;

}  // namespace

void Peer::send(Tag tag, Priority priority, std::span<const std::byte> bytes, Bytes given, Done done) {
  sweep(out_, out_limit_);
  SendStream& stream = out_[tag];
  stream.tag = tag;
  stream.items.push_back({bytes, priority, owner_.next_arrival(), std::move(given), std::move(done)});
  owner_.loop().open_work(1);
  if (stream.where == SendStream::Where::idle) enqueue(stream);
  pump();
}

void Peer::enqueue(SendStream& stream) {
  stream.order = {stream.items.front().priority, stream.items.front().arrival};
  stream.where = SendStream::Where::queued;
  queue_of(stream).insert(stream.order, &stream);
}

void Peer::dequeue(SendStream& stream) {
  if (stream.where == SendStream::Where::queued) queue_of(stream).erase(stream.order, &stream);
  if (stream.where == SendStream::Where::blocked) std::erase(blocked_, &stream);
  stream.where = SendStream::Where::idle;
}

void Peer::unblock(SendStream& stream) {
  stream.asked = false;
  if (stream.where != SendStream::Where::blocked) return;
  dequeue(stream);
  enqueue(stream);
}

bool Peer::next_frame(wire::Channel channel, OutFrame& frame) {
  if (channel == wire::Channel::memory) return next_urgent(frame) || make_credit_frame(frame) || next_bulk(frame);
  if (channel == wire::Channel::bulk) return !memory_ && next_bulk(frame);
  if (!outbox_.empty()) {
    frame = std::move(outbox_.front());
    outbox_.pop_front();
    return true;
  }
  return !memory_ && (make_credit_frame(frame) || next_urgent(frame));  // credit first: it is little, and bulk waits for it
}

bool Peer::next_urgent(OutFrame& frame) {
  SendStream* stream = urgent_queue_.next();
  if (!stream) return false;
  frame = cut(*stream, stream->items.front().bytes.size(), false, urgent_queue_);
  return true;
}

bool Peer::next_bulk(OutFrame& frame) {
  while (!to_tell_.empty()) {
    const auto found = out_.find(to_tell_.front());
    to_tell_.pop_front();
    if (found == out_.end()) continue;
    const SendStream& stream = found->second;
    const bool dry = stream.items.empty();
    if (!dry && stream.where != SendStream::Where::blocked) continue;  // it goes on by now
    frame = owned_frame({.kind = dry ? wire::Kind::dry : wire::Kind::request, .tag = stream.tag, .offset = stream.sent}, {});
    return true;
  }
  while (SendStream* stream = bulk_queue_.next()) {
    const SendItem& item = stream->items.front();
    if (!item.given.empty() && memory_ && memory_->lends(item.bytes)) {  // it takes no room over there
      frame = cut(*stream, std::min(item.bytes.size(), wire::kMaxFrame), false, bulk_queue_);
      return true;
    }
    const std::uint64_t granted = stream->limit > stream->sent ? stream->limit - stream->sent : 0;
    // A stream that was granted once goes on by grants alone: what runs ahead of them would only queue at the link.
    const std::uint64_t unasked = stream->limit == 0 ? kEagerStream - std::min(kEagerStream, stream->sent) : 0;
    const std::uint64_t eager = std::min(unasked, budget_.left());
    const std::size_t wanted = std::min(item.bytes.size(), frame_bytes_);
    std::size_t size = std::min<std::uint64_t>(wanted, granted > 0 ? granted : eager);
    if (size < item.bytes.size() && size > kPackedBlock && granted == 0) size -= size % kPackedBlock;
    if (size > 0) {
      if (granted == 0) budget_.sent(size);
      frame = cut(*stream, size, granted == 0, bulk_queue_);
      return true;
    }
    dequeue(*stream);
    stream->where = SendStream::Where::blocked;
    blocked_.push_back(stream);
    if (!stream->asked) {  // leaves behind the last frame, in the same system call
      stream->asked = true;
      to_tell_.push_back(stream->tag);
      return next_bulk(frame);
    }
  }
  busy_since_ = {};
  runs_on_ = bulk_ && bulk_->writing();
  return false;
}

OutFrame Peer::cut(SendStream& stream, std::size_t bytes, bool eager, SendQueue<SendStream>& queue) {
  SendItem& item = stream.items.front();
  OutFrame frame;
  const bool on_bulk = &queue == &bulk_queue_ && !memory_;
  const bool follows = on_bulk && (runs_on_ || bulk_->unsent() > 0);
  runs_on_ = on_bulk || runs_on_;
  frame.payload = item.bytes.first(bytes);
  if (on_bulk && packs()) owner_.packer().pack(frame);
  frame.header = wire::encode({.kind = wire::Kind::data,
                               .cls = item.priority.cls,
                               .eager = eager,
                               .follows = follows,
                               .dry = bytes == item.bytes.size() && stream.items.size() == 1,
                               .length = static_cast<std::uint32_t>(bytes),
                               .packed = static_cast<std::uint32_t>(frame.unpacked > 0 ? frame.payload.size() : 0),
                               .tag = stream.tag,
                               .offset = stream.sent,
                               .consumed = consumed_});
  consumed_carried_ = consumed_;
  frame.given = item.given;
  frame.tag = stream.tag;
  frame.data = true;
  frame.follows = follows;
  item.bytes = item.bytes.subspan(bytes);
  stream.sent += bytes;
  queue.sent(item.priority.cls, bytes);
  if (item.bytes.empty()) {
    frame.done = std::move(item.done);
    dequeue(stream);
    stream.items.pop_front();
    if (!stream.items.empty()) enqueue(stream);
  }
  return frame;
}

bool Peer::packs() const {
  const double others = owner_.sending_rate() - sending_rate();
  return owner_.packer().pays(least_at_once_ == 0, others + send_rate_);
}

void Peer::frame_written(wire::Channel channel, OutFrame& frame) {
  if (leaving_) pump();  // the goodbye follows the last frame
  if (!frame.data) return;
  sent_.fetch_add(frame.stream_bytes(), std::memory_order_relaxed);
  if (frame.unpacked > 0) {
    saved_.fetch_add(frame.unpacked - frame.payload.size(), std::memory_order_relaxed);
    owner_.packer().take_back(frame);
  }
  if (frame.lent) lent_.fetch_add(frame.payload.size(), std::memory_order_relaxed);
  if (frame.done) {
    owner_.loop().open_work(-1);
    owner_.loop().complete(std::move(frame.done), nullptr);
  }
  if (channel == wire::Channel::control) return;
  const Instant now = steady_now();
  if (Events::local().enabled()) {
    Events::local().record({.kind = EventKind::sent, .begin = now, .end = now, .step = -1, .peer = static_cast<std::int32_t>(rank_),
                            .value = static_cast<double>(frame.payload.size()), .name = 0});
  }
  if (channel != wire::Channel::bulk) return;
  LinkBytes& all = owner_.link_bytes();
  all.sent += frame.payload.size();
  trains_out_.frame(now, frame.payload.size(), frame.follows, bulk_ && bulk_->found_full(), all.sent);
  measure_sent(now, frame.payload.size());
}

void Peer::measure_sent(Instant now, std::size_t bytes) {
  if (busy_since_ == Instant{}) {
    busy_since_ = now;
    busy_bytes_ = 0;
    return;
  }
  busy_bytes_ += bytes;
  const Nanoseconds passed = now - busy_since_;
  if (passed < kSendSample) return;
  const double sample = static_cast<double>(busy_bytes_) / Seconds(passed).count();
  send_rate_ = send_rate_ == 0 ? sample : 0.75 * send_rate_ + 0.25 * sample;
  busy_since_ = now;
  busy_bytes_ = 0;
  const auto millisecond = static_cast<std::size_t>(send_rate_ / 1000);
  const std::size_t frame = std::clamp(millisecond, wire::kMinFrame, wire::kMaxFrame);
  if (frame > frame_bytes_ + frame_bytes_ / 4 || frame < frame_bytes_ - frame_bytes_ / 4) {
    frame_bytes_ = frame / kPackedBlock * kPackedBlock;
    bulk_->batch_bytes(std::max(frame, least_at_once_));
    const auto refill = static_cast<std::size_t>(send_rate_ * kRefill.count());
    set_unsent_mark(bulk_->socket(), std::max({frame, refill, least_at_once_}));
    if (control_) set_unsent_mark(control_->socket(), std::max(kUrgentAtOnce, refill));
  }
}

bool Peer::on_consumed(std::uint64_t total) {
  if (!budget_.consumed(total)) {
    owner_.broke_rules(rank_, "acknowledged bytes that were never sent");
    return false;
  }
  if (blocked_.empty() || budget_.left() == 0) return true;
  const std::vector<SendStream*> blocked = blocked_;
  for (SendStream* stream : blocked) {
    if (stream->limit == 0 && stream->sent < kEagerStream) unblock(*stream);
  }
  pump();
  return true;
}

void Peer::on_credit(const wire::Credit& credit) {
  if (!on_consumed(credit.consumed)) return;
  for (const wire::Grant& grant : credit.grants) {
    if (owner_.is_closed(grant.tag.operation)) continue;
    sweep(out_, out_limit_);
    const auto [found, made] = out_.try_emplace(grant.tag);
    SendStream& stream = found->second;
    if (made) {
      stream.tag = grant.tag;
      stream.sent = grant.base;
    }
    stream.limit = std::max(stream.limit, grant.limit);
    unblock(stream);
    if (stream.items.empty()) to_tell_.push_back(stream.tag);
  }
  pump();
}

void Peer::ask_for_credit() {
  for (SendStream* stream : blocked_) {
    if (std::find(to_tell_.begin(), to_tell_.end(), stream->tag) == to_tell_.end()) to_tell_.push_back(stream->tag);
  }
  if (!to_tell_.empty()) pump();
}

void Peer::add_grant(const Granted& granted) {
  grants_.push_back({granted.tag, granted.base, granted.limit});
  pump();
}

bool Peer::make_credit_frame(OutFrame& frame) {
  const std::uint64_t known = std::max(consumed_told_, consumed_carried_);
  const bool owed = consumed_ - known >= kEagerTold || (tell_consumed_ && consumed_ > consumed_told_);
  if (grants_.empty() && !owed) return false;
  wire::Credit credit{consumed_, {}};
  const std::size_t count = std::min(grants_.size(), wire::kGrantsPerFrame);
  credit.grants.assign(grants_.begin(), grants_.begin() + static_cast<std::ptrdiff_t>(count));
  grants_.erase(grants_.begin(), grants_.begin() + static_cast<std::ptrdiff_t>(count));
  consumed_told_ = consumed_;
  tell_consumed_ = false;
  const std::string payload = wire::encode(credit);
  frame = owned_frame(message_header(wire::Kind::credit, payload), payload);
  return true;
}

void Peer::tell(wire::Kind kind, const std::string& payload) {
  if (!control_) return;
  outbox_.push_back(owned_frame(message_header(kind, payload), payload));
  pump();
}

void Peer::heartbeat(Instant now, const std::string& activity) {
  if (!outbox_.empty()) return;  // the link is stuck; what waits there says as much
  wire::Heartbeat beat{.sent_ns = now.time_since_epoch().count(), .echo_ns = echo_ns_, .held_ns = 0, .activity = activity};
  if (echo_ns_ != 0) beat.held_ns = (now - echo_at_).count();
  tell(wire::Kind::heartbeat, wire::encode(beat));
}

}  // namespace shoal::net
