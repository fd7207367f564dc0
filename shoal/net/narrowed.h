// Some members of a transport, as a transport of their own: workers without those that only serve; or, where the one below survives losses
// (OnPeerLost::shrink), who is left, for rooms that know of no losses. The first of these members that is lost ends it, as under OnPeerLost::fail, with
// all that is open in it. One that survives goes on below, and those who are left can have another one.
//
// Ranks count from 0 among these members. Streams are streams of the one below, on channels of this one's own: its channel c is first_channel + c
// there. What a member gives up for (fail) ends the one below, too; a loss ends this one alone, for the others find it by themselves.
//
// Threads: as transport.h says; made and destroyed on any but the loop. Lifetime: the one below outlives it; when it is gone all handlers have run.
#pragma once

#include <memory>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::net {

class Narrowed final : public Transport {
 public:
  static constexpr std::uint16_t kChannels = 32;  // that may be used in it, from 0 on, unless its maker says otherwise

  // members: ranks below, this one among them, the same on all of them. first_channel: so many `channels` from there on are this one's alone. Throws
  // Error{cancelled} where the one below has ended.
  Narrowed(Transport& below, std::vector<Rank> members, std::uint16_t first_channel, std::uint16_t channels = kChannels);
  ~Narrowed() override;

  Rank rank() const override;
  Rank size() const override;
  void post(std::function<void()> fn) override;
  bool on_loop() const override;
  Instant now() const override;
  std::uint64_t at(Instant when, std::function<void()> fn) override;
  void cancel(std::uint64_t timer) override;
  bool drive(const std::function<bool()>& ready, Instant deadline) override;
  void send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) override;
  void receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) override;
  void give(Rank to, Tag tag, Priority priority, Bytes bytes, Done done) override;
  void take(Rank from, Tag tag, Priority priority, std::size_t size, Taken done) override;
  void close(std::uint64_t operation, const Failure& why) override;
  Failure failure() const override;
  void on_failure(std::function<void(const Failure&)> handler) override;
  OnPeerLost on_peer_lost() const override { return OnPeerLost::fail; }
  Failure lost(Rank) const override { return nullptr; }
  void on_lost(std::function<void(Rank, const Failure&)>) override {}  // nobody is while this goes on
  void fail(const Error& why) override;
  void doing(std::string activity) override;
  LinkStats link(Rank peer) const override;
  std::shared_ptr<std::byte> lendable(std::size_t bytes) override;
  std::string host(Rank peer) const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shoal::net
