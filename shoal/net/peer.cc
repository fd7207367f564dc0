#include "shoal/net/peer.h"

#include <algorithm>

#include "shoal/net/tcp_info.h"

namespace shoal::net {

Peer::Peer(PeerOwner& owner, Rank rank) : owner_(owner), rank_(rank) {}

Peer::~Peer() {
  close();
  owner_.loop().forget(*this);
}

void Peer::adopt(wire::Channel channel, Socket socket) {
  auto connection = std::make_shared<Connection>(std::move(socket), channel, *this);
  const bool is_bulk = channel == wire::Channel::bulk;
  if (is_bulk && over_loopback(connection->socket())) least_at_once_ = kLocalAtOnce;  // no link has a queue; each call wakes the other side
  // What the kernel holds can be neither overtaken nor seen to be late: who sends on when all before has left (table/readers.h) would fill its memory.
  const std::size_t at_once = is_bulk ? least_at_once_ : kUrgentAtOnce;
  set_unsent_mark(connection->socket(), is_bulk ? std::max(2 * frame_bytes_, at_once) : at_once);
  if (at_once > 0) connection->batch_bytes(at_once);
  (is_bulk ? bulk_ : control_) = connection;
  connection->start();
  pump();
}

void Peer::close() {
  if (control_) control_->close();
  if (bulk_) bulk_->close();
  if (memory_) owner_.memory_connections().remove(*memory_);
  memory_.reset();
}

void Peer::run_chore() {
  // Urgent bytes and credit first: they are few, and others wait for them.
  if (control_) control_->pump();
  if (bulk_) bulk_->pump();
  if (memory_) memory_->pump();
  const bool queued = !urgent_queue_.empty() || !bulk_queue_.empty() || !blocked_.empty() || (memory_ && memory_->writing());
  if (leaving_ && !said_goodbye_ && !queued) {
    said_goodbye_ = true;
    tell(wire::Kind::goodbye, {});
  }
}

void Peer::ended(wire::Channel channel, std::error_code why) { owner_.connection_lost(rank_, channel, why); }

void Peer::close_operation(std::uint64_t operation, const Failure& why) {
  Loop& loop = owner_.loop();
  const auto end_one = [&](Done done) {
    loop.open_work(-1);
    loop.complete(std::move(done), why);
  };
  for (const auto& connection : {control_, bulk_}) {
    if (connection) connection->detach(operation, end_one);
  }
  if (memory_) memory_->detach(operation, end_one);
  const Tag first{operation, 0};
  for (auto at = out_.lower_bound(first); at != out_.end() && at->first.operation == operation; at = out_.erase(at)) {
    dequeue(at->second);
    for (SendItem& item : at->second.items) end_one(std::move(item.done));
  }
  for (auto at = in_.lower_bound(first); at != in_.end() && at->first.operation == operation; at = in_.erase(at)) {
    ReceiveStream& stream = at->second;
    for (ReceiveItem& item : stream.items) end_one(std::move(item.done));
    for (const Chunk& chunk : stream.unexpected) {
      unexpected_like(chunk) -= chunk.end - chunk.begin;
      if (chunk.eager) consumed_eager(chunk.end - chunk.begin);
    }
    credit().forget(stream.demand);
  }
  for (Incoming& incoming : incoming_) {
    if (incoming.left > 0 && incoming.header.tag.operation == operation) incoming.dropped = true;
  }
}

void Peer::fail_all(const Failure& why) {
  Loop& loop = owner_.loop();
  const auto end_one = [&](Done done) {
    loop.open_work(-1);
    loop.complete(std::move(done), why);
  };
  for (const auto& connection : {control_, bulk_}) {
    if (connection) connection->detach_all(end_one);
  }
  if (memory_) memory_->detach_all(end_one);
  for (auto& [tag, stream] : out_) {
    dequeue(stream);
    for (SendItem& item : stream.items) end_one(std::move(item.done));
    stream.items.clear();
  }
  fail_receives(why);
}

void Peer::fail_receives(const Failure& why) {
  while (gone && memory_ && memory_->look()) {  // what it left there before it went
  }
  for (auto& [tag, stream] : in_) {
    for (ReceiveItem& item : stream.items) {
      owner_.loop().open_work(-1);
      owner_.loop().complete(std::move(item.done), why);
    }
    stream.items.clear();
    credit().forget(stream.demand);
  }
  for (Incoming& incoming : incoming_) incoming.dropped = true;
}

void Peer::lose(const Failure& why) {
  lost_ = true;
  fail_all(why);
  for (const auto& connection : {control_, bulk_}) {
    if (connection) connection->let_go();
  }
  if (memory_) {
    memory_->forget();
    owner_.memory_connections().remove(*memory_);
  }
  memory_.reset();
}

void Peer::say_goodbye() {
  leaving_ = true;
  pump();
}

bool Peer::drained() {
  if (lost_ || !control_ || !bulk_ || control_->closed() || bulk_->closed()) return true;
  if (leaving_ && !said_goodbye_) return false;
  return outbox_.empty() && !control_->writing() && !bulk_->writing() && control_->unacknowledged() == 0 &&
         bulk_->unacknowledged() == 0;
}

template <typename Streams>
void Peer::sweep(Streams& streams, std::size_t& limit) {
  if (streams.size() < limit) return;
  for (auto at = streams.begin(); at != streams.end();) {
    const bool reading = std::any_of(incoming_.begin(), incoming_.end(), [&](const Incoming& incoming) {
      return incoming.left > 0 && incoming.header.tag == at->first;
    });
    if (!idle(at->second) || reading) {
      ++at;
      continue;
    }
    if constexpr (requires { at->second.demand; }) credit().forget(at->second.demand);
    at = streams.erase(at);
  }
  limit = std::max(kStreams, 2 * streams.size());
}
template void Peer::sweep(std::map<Tag, SendStream>&, std::size_t&);
template void Peer::sweep(std::map<Tag, ReceiveStream>&, std::size_t&);

std::uint32_t Peer::stalled_heartbeats() {
  std::uint32_t most = 0;
  for (const auto& connection : {control_, bulk_}) {
    if (connection) most = std::max(most, connection->stalled_heartbeats());
  }
  return most;
}

Nanoseconds Peer::shortest_round_trip() {
  return control_ && !control_->closed() ? net::shortest_round_trip(control_->socket().native_handle()) : Nanoseconds{};
}

LinkStats Peer::stats() const {
  return {.sent = sent_, .saved = saved_, .lent = lent_, .received = received_, .wire_sent = wire_sent_, .wire_received = wire_received_,
          .out = trains_out_.so_far(), .in = trains_in_.so_far(), .round_trip = round_trip_s_, .shared_memory = shares_};
}

std::string Peer::activity() const {
  const std::lock_guard lock(told_mutex_);
  return activity_;
}

}  // namespace shoal::net
