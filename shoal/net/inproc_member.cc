#include <algorithm>
#include <cstring>

#include "shoal/net/inproc_world.h"

namespace shoal::net {

using namespace scripted;

OutStream& InprocMember::out(Rank to, Tag tag) {
  const auto [found, added] = out_.try_emplace({tag, to});
  if (added) found->second.allowed = world_.network.eager;
  return found->second;
}

void InprocMember::queue(OutStream& stream, Rank to, Tag tag) {
  const bool was_ready = stream.turn.has_value();
  if (was_ready) turns_.erase(*stream.turn);
  stream.turn.reset();
  if (stream.sends.empty()) return;
  const Send& head = stream.sends.front();
  if (stream.allowed == 0 && head.priority.cls != Class::urgent) return;
  if (!was_ready) stream.ready = world_.now;
  stream.turn = Turn{head.priority.cls, head.priority.value, head.priority.iteration, head.sequence, to, tag};
  turns_.insert(*stream.turn);
  if (!std::exchange(egress_busy_, true)) post([this] { pump(); });
}

void InprocMember::send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) {
  if (stopped) return;
  const Failure why = failure_ ? failure_ : lost_[to];
  if (why || bytes.empty()) return post([done = std::move(done), why] { done(why); });
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
  const bool follows = turn.cls != Class::urgent && peers_[turn.peer].left != Instant{} && stream.ready <= peers_[turn.peer].left;
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
  world_.schedule(
      world_.leave(rank_, size), rank_, [this, turn, follows, frame = std::move(frame), done = std::move(done)]() mutable {
        peers_[turn.peer].stats.sent += frame.size();
        if (turn.cls != Class::urgent) {
          peers_[turn.peer].left = world_.now;
          link_bytes_.sent += frame.size();
          peers_[turn.peer].trains_out.frame(world_.now, frame.size(), follows, true, link_bytes_.sent);
        }
        const Connection connection = turn.cls == Class::urgent ? control : bulk;
        const std::size_t bytes = frame.size();
        InprocMember& receiver = *world_.members[turn.peer];
        world_.travel(rank_, turn.peer, connection, bytes, [&receiver, from = rank_, tag = turn.tag, is_bulk = connection == bulk, follows, frame = std::move(frame)] {
          if (is_bulk) receiver.frame_arrived(from, frame.size(), follows);
          receiver.deliver(from, tag, frame);
        });
        pump();
        if (done) done(failure_);
      });
}

void InprocMember::grant(Rank to, Tag tag, std::uint64_t bytes) {
  if (failure_ || lost_[to] || is_closed(tag.operation)) return;
  OutStream& stream = out(to, tag);
  stream.allowed += bytes;
  queue(stream, to, tag);
}

void InprocMember::receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) {
  if (stopped) return;
  const Failure why = failure_ ? failure_ : lost_[from];
  if (why || into.empty()) return post([done = std::move(done), why] { done(why); });
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

void InprocMember::frame_arrived(Rank from, std::size_t bytes, bool follows) {
  link_bytes_.received += bytes;
  peers_[from].trains_in.frame(world_.now, bytes, follows, true, link_bytes_.received);
}

void InprocMember::deliver(Rank from, Tag tag, std::span<const std::byte> bytes) {
  if (failure_ || lost_[from] || is_closed(tag.operation)) return;
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
  closed_.add(operation);
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

void InprocMember::go_on_without(Rank lost, const Failure& why) {
  if (stopped || failure_ || lost_[lost]) return;
  if (lost == rank_) return drop_out(why);
  losses_.lose(lost);
  lost_[lost] = why;
  std::vector<Done> waiting;
  for (auto stream = out_.begin(); stream != out_.end();) {
    if (stream->first.second != lost) {
      ++stream;
      continue;
    }
    if (stream->second.turn) turns_.erase(*stream->second.turn);
    for (Send& send : stream->second.sends) waiting.push_back(std::move(send.done));
    stream = out_.erase(stream);
  }
  for (auto stream = in_.begin(); stream != in_.end();) {
    if (stream->first.second != lost) {
      ++stream;
      continue;
    }
    for (Receive& receive : stream->second.receives) waiting.push_back(std::move(receive.done));
    stream = in_.erase(stream);
  }
  for (Done& done : waiting) post([done = std::move(done), why] { done(why); });
  for (const auto& handler : loss_handlers_) post([handler, lost, why] { handler(lost, why); });
  world_.tell_all(rank_, [lost, why](InprocMember& other) { other.go_on_without(lost, why); });
}

void InprocMember::drop_out(const Failure& why) {
  const auto own = std::make_shared<const Error>(Code::peer_lost, "this member (rank " + std::to_string(rank_) + ") was given up: " + why->fact());
  world_.tell_all(rank_, [why, rank = rank_](InprocMember& other) { other.go_on_without(rank, why); });
  end(own);
}

void InprocMember::silent(Rank a, Rank b) {
  if (stopped || failure_) return;
  losses_.silent(a, b, world_.now);
  if (losses_.due()) at(*losses_.due(), [this] { conclude(); });
}

void InprocMember::conclude() {
  if (failure_) return;
  for (const Rank gone : losses_.conclude(world_.now)) {
    const Failure why = world_.loss_of(gone, "not heard for 5 s");
    go_on_without(gone, why);
  }
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

}  // namespace shoal::net
