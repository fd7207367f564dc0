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
  using Welcome = std::function<Answer(const Purpose&)>;           // it knows the secret; is it wanted?
  using Admit = std::function<void(Socket, const Purpose&)>;       // proved
  using Refused = std::function<void(const Purpose& claimed, const Endpoint& from)>;  // ours by its form, but not proved

  // Listens at once; any thread. Where `at` is every IPv6 address it is every IPv4 address as well. Throws Error{io} naming
  // address and port.
  Door(const Endpoint& at, const Key& key);
  Door(int listening_fd, const Key& key);                          // takes the descriptor over
  void open(Welcome welcome, Admit admit, Refused refused = {});   // from the loop
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
  Refused refused_;
  int handshakes_ = 0;            // under way; bounded
  std::atomic<std::uint64_t> strangers_{0};
};

struct Dialled {
  std::optional<Socket> socket;  // proved, if the answer is welcome
  Answer answer = Answer::silent;
  Endpoint at;                   // who answered, or took the connection and was silent; port 0: nobody
};
// Tries each of `candidates` once, until one gives an answer that proves the secret and is not "busy". Else the last
// answer, silence only if there was nothing else.
asio::awaitable<Dialled> knock(std::vector<Endpoint> candidates, Key key, Purpose purpose);

// Knocks again and again until such an answer, the deadline or `wanted` turned false: the peer may not listen yet.
asio::awaitable<Dialled> dial(std::vector<Endpoint> candidates, Key key, Purpose purpose, Instant deadline, std::function<bool()> wanted);

}  // namespace shoal::net
