// The part of joining that runs on the loop: lets higher ranks in and dials lower ones, until every pair has both of its
// connections.
//
// Lifetime: shared by who joins, by the door's handlers and by its own searches, which end by give_up() or at their deadline.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "shoal/net/dial.h"
#include "shoal/net/job.h"
#include "shoal/net/tcp_transport.h"

namespace shoal::net {

class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  Connecting(const Place& place, std::shared_ptr<TcpTransport> transport, std::shared_ptr<Door> door, const Key& key,
             const std::string& scope);

  // From the loop:
  void open_door();
  void dial_lower(const std::vector<std::vector<Endpoint>>& candidates, Instant deadline);
  void give_up() { wanted_ = false; }

  bool complete() const { return complete_; }         // any thread; also after a failure
  const Endpoint& used(Rank peer) const { return used_[peer]; }  // once complete

 private:
  Answer welcome(const Purpose& purpose) const;
  void connected(Rank peer, wire::Channel channel, Socket socket);
  static asio::awaitable<void> connect_to(std::shared_ptr<Connecting> self, Rank peer, std::vector<Endpoint> candidates, Instant deadline);

  std::shared_ptr<TcpTransport> transport_;
  std::shared_ptr<Door> door_;
  const Key key_;
  Purpose purpose_;
  std::vector<Endpoint> used_;       // by rank
  bool wanted_ = true;
  std::atomic<bool> complete_{false};
};

}  // namespace shoal::net
