// Connecting the members of a job: an open port that lets in whoever proves the secret, and the search for the
// address at which a peer answers. Everything on the loop.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/handshake.h"
#include "shoal/net/loop.h"

namespace shoal::net {

// A listening port. Strangers get no answer, are counted, and the first is logged.
class Door : public std::enable_shared_from_this<Door> {
 public:
  using Welcome = std::function<bool(const Purpose&)>;             // before the proof is complete: is it wanted?
  using Admit = std::function<void(Socket, const Purpose&)>;       // proved

  // Listens at once; any thread. Where `at` is every IPv6 address it is every IPv4 address as well. Throws Error{io} naming
  // address and port.
  Door(const Endpoint& at, const Key& key);
  Door(int listening_fd, const Key& key);                          // takes the descriptor over
  void open(Welcome welcome, Admit admit);                         // from the loop
  void close();
  Endpoint endpoint() const { return endpoint_; }
  std::uint64_t strangers() const { return strangers_; }

 private:
  asio::awaitable<void> accept_all(std::shared_ptr<Door> self);
  asio::awaitable<void> admit_one(std::shared_ptr<Door> self, Socket socket);
  void stranger(const std::string& from);

  asio::ip::tcp::acceptor acceptor_;
  Endpoint endpoint_;
  ForkGuard guard_;
  const Key key_;
  Welcome welcome_;
  Admit admit_;
  int handshakes_ = 0;            // under way; bounded
  std::atomic<std::uint64_t> strangers_{0};
};

// One connection proved at the first of `candidates` that answers as `purpose.to`; nullopt when the deadline has passed or
// `wanted` turned false. Tries them again and again until then: the peer may not listen yet.
asio::awaitable<std::optional<Socket>> dial(std::vector<Endpoint> candidates, Key key, Purpose purpose, Instant deadline,
                                            std::function<bool()> wanted);

}  // namespace shoal::net
