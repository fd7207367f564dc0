#include "shoal/nn/group/points.h"

#include <algorithm>
#include <string>

#include "shoal/core/text.h"
#include "shoal/nn/group/failure.h"

namespace shoal::nn {
namespace {

constexpr std::uint64_t kAcknowledgeEach = Points::kEager / 4;
constexpr unsigned kNumberBits = 34;  // of a stream's 48: the rest names the sender
constexpr std::uint32_t kAccepted = 0, kRefused = 1;  // tag of a verdict

// Of a message's note, in detail[0]: whether its bytes come at once or wait for the verdict.
enum Bytes : std::uint64_t { kFollow, kWait };
bool is_eager(const Note& message) { return message.detail[0] == kFollow; }

net::Priority priority_of(std::size_t bytes) {
  return {bytes <= net::kUrgentLimit ? net::Class::urgent : net::Class::bulk, 0, 0};
}

std::string describe(const char* verb, const char* preposition, const std::string& who, std::uint32_t tag) {
  return std::string(verb) + " " + preposition + " " + who + " (tag " + std::to_string(tag) + ")";
}

std::string rank_name(net::Rank rank) { return "rank " + std::to_string(rank); }

}  // namespace

Points::Points(net::Transport& transport, Notes& notes, std::uint16_t channel)
    : transport_(transport), notes_(notes), channel_(channel), unmatched_(transport.size()),
      to_acknowledge_(transport.size()), self_(std::make_shared<Points*>(this)) {
  notes.on(NoteKind::message, [this](net::Rank from, const Note& note) { announced(from, note); });
  notes.on(NoteKind::taken, [this](net::Rank from, const Note& note) {
    unmatched_[from] -= std::min(unmatched_[from], note.value);
  });
  notes.on(NoteKind::verdict, [this](net::Rank from, const Note& note) { judged(from, note); });
}

std::uint64_t Points::stream_of(net::Rank from, std::uint64_t number) const {
  return net::operation_in(channel_, (std::uint64_t{from} << kNumberBits) | number);
}

// --- sending

void Points::send(net::Rank to, std::uint32_t tag, std::span<const std::byte> bytes, Nanoseconds patience, net::Done done) {
  if (ended_) return done(ended_);
  const std::uint64_t number = ++next_number_;
  const bool eager = unmatched_[to] < kEager;
  const auto timed_out = [this, number, to, tag, patience] {
    finish_send(number, failure_of(Code::timeout,
                                   rank_name(to) + " has not taken the message within " + show_seconds(Seconds(patience).count()),
                                   describe("send", "to", rank_name(to), tag)));
  };
  sending_.emplace(number, Sending{to, tag, bytes, std::move(done), transport_.at(transport_.now() + patience, timed_out)});
  Note note{NoteKind::message, tag, number, bytes.size()};
  note.detail[0] = eager ? kFollow : kWait;
  notes_.send(to, note);
  if (!eager) return;
  ++unmatched_[to];
  launch(number);
}

void Points::launch(std::uint64_t number) {
  const Sending& sending = sending_.at(number);
  if (sending.bytes.empty()) return finish_send(number, nullptr);
  transport_.send(sending.to, {stream_of(transport_.rank(), number), 0}, priority_of(sending.bytes.size()), sending.bytes,
                  [weak = std::weak_ptr(self_), number](const net::Failure& failure) {
                    if (const auto self = weak.lock()) (*self)->finish_send(number, failure);
                  });
}

void Points::judged(net::Rank from, const Note& note) {
  const auto found = sending_.find(note.number);
  if (found == sending_.end() || found->second.to != from) return;  // its deadline has passed
  if (note.tag == kAccepted) return launch(note.number);
  const std::string where = describe("send", "to", rank_name(from), found->second.tag);
  finish_send(note.number, failure_of(Code::mismatch,
                                      "the message has " + std::to_string(found->second.bytes.size()) +
                                          " bytes and rank " + std::to_string(from) + " receives " +
                                          std::to_string(note.value), where));
}

void Points::finish_send(std::uint64_t number, const net::Failure& failure) {
  const auto found = sending_.find(number);
  if (found == sending_.end()) return;
  Sending sending = std::move(found->second);
  sending_.erase(found);
  transport_.cancel(sending.timer);
  transport_.close(stream_of(transport_.rank(), number), failure ? failure : failure_of(Code::cancelled, "sent", ""));
  sending.done(failure);
}

// --- receiving

void Points::receive(std::optional<net::Rank> from, std::uint32_t tag, std::span<std::byte> into, Nanoseconds patience,
                     Received done) {
  if (ended_) return done(ended_, 0);
  const std::uint64_t id = ++next_receive_;
  const std::uint64_t timer =
      transport_.at(transport_.now() + patience, [this, id, patience] { receive_timed_out(id, patience); });
  Receiving receiving{id, from, tag, into, std::move(done), timer};
  for (auto waiting = announced_.begin(); waiting != announced_.end(); ++waiting) {
    if (waiting->note.tag != tag || (from && waiting->from != *from)) continue;
    const Announced message = *waiting;
    announced_.erase(waiting);
    return match(std::move(receiving), message.from, message.note);
  }
  receiving_.push_back(std::move(receiving));
}

void Points::announced(net::Rank from, const Note& note) {
  if (ended_) return;
  for (auto waiting = receiving_.begin(); waiting != receiving_.end(); ++waiting) {
    if (waiting->tag != note.tag || (waiting->from && *waiting->from != from)) continue;
    Receiving receiving = std::move(*waiting);
    receiving_.erase(waiting);
    return match(std::move(receiving), from, note);
  }
  announced_.push_back({from, note});
}

void Points::match(Receiving receiving, net::Rank from, const Note& note) {
  const std::uint64_t stream = stream_of(from, note.number);
  if (note.value != receiving.into.size()) {
    transport_.cancel(receiving.timer);
    acknowledge(from, note, kRefused, receiving.into.size());
    const auto failure = failure_of(Code::mismatch,
                                    rank_name(from) + " sent " + std::to_string(note.value) + " bytes and this member receives " +
                                        std::to_string(receiving.into.size()),
                                    describe("recv", "from", rank_name(from), note.tag));
    transport_.close(stream, failure);
    return receiving.done(failure, from);
  }
  acknowledge(from, note, kAccepted, receiving.into.size());
  arriving_.emplace(stream, Arriving{receiving.id, from, note.tag, std::move(receiving.done), receiving.timer});
  if (receiving.into.empty()) return finish_receive(stream, nullptr);
  // The deadline goes on with the bytes: it now ends the stream.
  transport_.receive(from, {stream, 0}, priority_of(receiving.into.size()), receiving.into,
                     [weak = std::weak_ptr(self_), stream](const net::Failure& failure) {
                       if (const auto self = weak.lock()) (*self)->finish_receive(stream, failure);
                     });
}

void Points::acknowledge(net::Rank from, const Note& note, std::uint32_t verdict, std::uint64_t expected) {
  const bool eager = is_eager(note);
  if (!eager || verdict == kRefused) notes_.send(from, {NoteKind::verdict, verdict, note.number, expected});
  if (eager && ++to_acknowledge_[from] == kAcknowledgeEach) {
    notes_.send(from, {NoteKind::taken, 0, 0, kAcknowledgeEach});
    to_acknowledge_[from] = 0;
  }
}

void Points::finish_receive(std::uint64_t stream, const net::Failure& failure) {
  const auto found = arriving_.find(stream);
  if (found == arriving_.end()) return;
  Arriving arriving = std::move(found->second);
  arriving_.erase(found);
  transport_.cancel(arriving.timer);
  transport_.close(stream, failure ? failure : failure_of(Code::cancelled, "received", ""));
  arriving.done(failure, arriving.from);
}

void Points::receive_timed_out(std::uint64_t id, Nanoseconds patience) {
  const std::string within = " within " + show_seconds(Seconds(patience).count());
  for (auto waiting = receiving_.begin(); waiting != receiving_.end(); ++waiting) {
    if (waiting->id != id) continue;
    Receiving receiving = std::move(*waiting);
    receiving_.erase(waiting);
    const std::string who = receiving.from ? rank_name(*receiving.from) : "any rank";
    return receiving.done(failure_of(Code::timeout, (receiving.from ? who + " has not" : "nobody has") + " sent such a message" + within,
                                     describe("recv", "from", who, receiving.tag)),
                          receiving.from.value_or(0));
  }
  for (const auto& [stream, arriving] : arriving_) {
    if (arriving.id != id) continue;
    return finish_receive(stream, failure_of(Code::timeout, "the message has not arrived whole" + within,
                                             describe("recv", "from", rank_name(arriving.from), arriving.tag)));
  }
}

void Points::end(const net::Failure& why) {
  if (ended_) return;
  ended_ = why;
  while (!sending_.empty()) finish_send(sending_.begin()->first, why);
  while (!arriving_.empty()) finish_receive(arriving_.begin()->first, why);
  while (!receiving_.empty()) {
    Receiving receiving = std::move(receiving_.front());
    receiving_.pop_front();
    transport_.cancel(receiving.timer);
    receiving.done(why, receiving.from.value_or(0));
  }
  announced_.clear();
}

}  // namespace shoal::nn
