#include "shoal/net/connecting.h"

#include "shoal/net/spawn.h"

namespace shoal::net {
namespace {

wire::Channel channel_of(Role role) { return role == Role::bulk ? wire::Channel::bulk : wire::Channel::control; }

}  // namespace

Connecting::Connecting(const Place& place, std::shared_ptr<TcpTransport> transport, std::shared_ptr<Door> door, const Key& key,
                       const std::string& scope)
    : transport_(std::move(transport)), door_(std::move(door)), key_(key), used_(place.size) {
  purpose_.from = place.rank;
  purpose_.job = hash_of_job(place.job + '\n' + std::to_string(place.generation) + '\n' + scope + '\n' +
                             std::to_string(place.size));
}

// The transport's heartbeats begin with the first connection: a member that is complete must not take others, who still
// look for each other, for dead.
void Connecting::open_door() {
  transport_->begin();
  door_->open([self = shared_from_this()](const Purpose& p) { return self->welcome(p); },
              [self = shared_from_this()](Socket socket, const Purpose& p) {
                if (self->welcome(p) == Answer::welcome) self->connected(p.from, channel_of(p.role), std::move(socket));
              });
}

void Connecting::dial_lower(const std::vector<std::vector<Endpoint>>& candidates, Instant deadline) {
  for (Rank peer = 0; peer < purpose_.from; ++peer) spawn(connect_to(shared_from_this(), peer, candidates[peer], deadline));
}

Answer Connecting::welcome(const Purpose& p) const {
  const bool for_me = p.role != Role::coordinator && p.to == purpose_.from && p.from > p.to && p.job == purpose_.job;
  if (!for_me || !wanted_) return Answer::busy;
  return transport_->wants(p.from, channel_of(p.role)) ? Answer::welcome : Answer::taken;
}

void Connecting::connected(Rank peer, wire::Channel channel, Socket socket) {
  used_[peer] = other_end(socket);
  transport_->adopt(peer, channel, std::move(socket));
  complete_ = transport_->connected();
  Loop::shared().progress();
}

asio::awaitable<void> Connecting::connect_to(std::shared_ptr<Connecting> self, Rank peer, std::vector<Endpoint> candidates,
                                             Instant deadline) {
  for (const Role role : {Role::control, Role::bulk}) {
    Purpose purpose = self->purpose_;
    purpose.role = role;
    purpose.to = peer;
    const std::function<bool()> wanted = [self] { return self->wanted_; };
    Dialled came = co_await dial(candidates, self->key_, purpose, deadline, wanted);
    if (came.answer == Answer::taken && self->wanted_) {
      self->transport_->fail(Error(Code::mismatch, "rank " + std::to_string(peer) + " at " + show(came.at) + " has a member of rank " +
                                                       std::to_string(purpose.from) + " already", "join",
                                   "give every member a rank of its own"));
    }
    if (!came.socket || !self->wanted_ || !self->transport_->wants(peer, channel_of(role))) co_return;
    self->connected(peer, channel_of(role), std::move(*came.socket));
    candidates = {self->used_[peer]};
  }
}

}  // namespace shoal::net
