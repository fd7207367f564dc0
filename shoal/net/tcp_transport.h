// Transport over TCP: the peers of one job or group, what ends it, and its health. Made by join_tcp() (join.cc),
// which connects it; leaves in order with its Job. Everything on the loop unless said otherwise.
//
// Lifetime: shared by its Job and by handlers that still wait in the loop; leave() ends the latter.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shoal/net/closed_operations.h"
#include "shoal/net/health.h"
#include "shoal/net/job.h"
#include "shoal/net/losses.h"
#include "shoal/net/peer.h"

namespace shoal::net {

class TcpTransport final : public Transport,
                           public std::enable_shared_from_this<TcpTransport>,
                           public PeerOwner,
                           public Chore {
 public:
  TcpTransport(Rank rank, Rank size, const JoinOptions& options);
  ~TcpTransport() override;

  // Connecting (join.cc). `hosts` by rank.
  void name_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  bool wants(Rank peer, wire::Channel channel) const;  // not connected yet
  void adopt(Rank peer, wire::Channel channel, Socket socket);
  bool connected() const;                              // to everyone
  void begin();                                        // heartbeats start
  // Memory with these members of this host; before the first stream. shared(): each is settled, one way or the other.
  void share(const std::vector<Rank>& neighbours);
  bool shared() const { return shared_; }              // any thread

  // Goodbye: sends what is queued, within a bound, then closes. `gone` runs at the end.
  void leave(std::function<void()> gone);

  // Transport
  Rank rank() const override { return rank_; }
  Rank size() const override { return size_; }
  void post(std::function<void()> fn) override { loop_.post(std::move(fn)); }
  bool on_loop() const override { return loop_.on_loop(); }
  Instant now() const override { return steady_now(); }
  std::uint64_t at(Instant when, std::function<void()> fn) override { return loop_.at(when, std::move(fn)); }
  void cancel(std::uint64_t timer) override { loop_.cancel(timer); }
  bool drive(const std::function<bool()>& ready, Instant deadline) override { return loop_.drive(ready, deadline); }
  void send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Done done) override;
  void receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, Done done) override;
  void give(Rank to, Tag tag, Priority priority, Bytes bytes, Done done) override;
  void take(Rank from, Tag tag, Priority priority, std::size_t size, Taken done) override;
  void close(std::uint64_t operation, const Failure& why) override;
  Failure failure() const override;
  void on_failure(std::function<void(const Failure&)> handler) override;
  OnPeerLost on_peer_lost() const override { return on_peer_lost_; }
  Failure lost(Rank peer) const override;
  void on_lost(std::function<void(Rank, const Failure&)> handler) override;
  void fail(const Error& why) override;
  void doing(std::string activity) override;
  LinkStats link(Rank peer) const override;
  std::string host(Rank peer) const override { return hosts_.at(peer); }
  std::shared_ptr<std::byte> lendable(std::size_t bytes) override;

 private:
  // PeerOwner
  Loop& loop() override { return loop_; }
  CreditPolicy& credit(bool link) override { return link ? credit_ : local_credit_; }
  LinkBytes& link_bytes() override { return link_bytes_; }
  Packer& packer() override { return packer_; }
  double sending_rate() const override;
  Chore& grants() override { return *this; }
  bool is_closed(std::uint64_t operation) const override { return failed_ || closed_.contains(operation); }
  std::uint64_t next_arrival() override { return ++arrivals_; }
  void heard(Rank peer) override { health_.heard(peer, steady_now()); }
  void said_goodbye(Rank peer) override;
  void told(Rank peer, wire::Kind kind, const wire::Notice& notice) override;
  void connection_lost(Rank peer, wire::Channel channel, std::error_code why) override;
  void broke_rules(Rank peer, const std::string& how) override;
  MemoryConnections& memory_connections() override { return memory_connections_; }
  const Arena* arena() const override { return arena_.get(); }
  void cannot_share(Rank peer, const std::string& why) override;
  void sharing_changed() override;
  void run_chore() override;                           // grants

  void send(Rank to, Tag tag, Priority priority, std::span<const std::byte> bytes, Bytes given, Done done);
  void receive(Rank from, Tag tag, Priority priority, std::span<std::byte> into, std::shared_ptr<Body> body, Done done);
  void tick();
  std::string member(Rank rank) const;                 // "rank 2 (hostb)"
  std::string not_heard() const;
  std::string stalled() const;
  std::string last_did(Rank rank) const;               // "; it last did: ...", or nothing
  std::string own_activity();
  std::shared_ptr<const Error> left_error(Rank peer) const;
  void lose(Rank peer, const std::string& how);        // for certain
  void give_up(Rank peer, const std::string& how);     // its link is no good, though both of its ends may live
  void note_silent(Rank a, Rank b, const std::string& how);
  void conclude();
  void go_on_without(Rank peer, const Failure& why);
  void given_up(const std::string& by_whom);           // this member
  void gave_up(Rank peer, const wire::Notice& notice);
  void tell_others(wire::Kind kind, Rank culprit, const Error& why);
  void end(const std::shared_ptr<const Error>& why, Rank culprit);
  void check_gone(Instant deadline, std::function<void()> gone);

  Loop& loop_;
  const Rank rank_, size_;
  const HealthLimits limits_;
  const std::uint32_t stalls_after_;                   // heartbeats
  const OnPeerLost on_peer_lost_;
  std::vector<std::string> hosts_;
  MemoryConnections memory_connections_;               // outlives the peers
  Packer packer_;
  const std::shared_ptr<Arena> arena_;                 // nullptr: no memory is shared
  std::vector<Rank> neighbours_;
  bool sharing_ = false;                               // share() was called
  std::atomic<bool> shared_{false};
  LinkBytes link_bytes_;
  std::vector<std::unique_ptr<Peer>> peers_;           // nullptr at rank_
  CreditPolicy credit_, local_credit_;                 // of peers with a link between; through memory
  bool all_local_ = true;  // of the peers connected so far
  bool failed_ = false;    // failure_ is set; the loop's copy
  Health health_;
  Losses losses_;
  std::map<Rank, std::string> why_silent_;             // by either end of a silent link, as it was told first
  std::uint64_t arrivals_ = 0;
  ClosedOperations closed_{4096};
  std::uint64_t heartbeat_timer_ = 0, credit_timer_ = 0;
  std::vector<std::function<void(const Failure&)>> handlers_;
  std::vector<std::function<void(Rank, const Failure&)>> loss_handlers_;
  bool leaving_ = false, closed_down_ = false;

  mutable std::mutex mutex_;                           // guards what follows
  Failure failure_;
  std::vector<Failure> lost_;                          // by rank
  std::string activity_;
};

}  // namespace shoal::net
