#include "shoal/net/dial.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/v6_only.hpp>
#include <cstdio>

#include "shoal/core/error.h"
#include "shoal/net/whole.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

constexpr int kHandshakes = 256;               // under way at once; more are closed, members try again
constexpr Nanoseconds kConnectPatience = 1500ms;  // for one candidate
constexpr Nanoseconds kPause = 50ms;           // before all candidates are tried again

asio::awaitable<void> pause(Nanoseconds length) {
  asio::steady_timer timer(co_await asio::this_coro::executor, length);
  std::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<bool> connect(Socket& socket, const Endpoint& to) {
  const Deadline deadline(socket, kConnectPatience);
  std::error_code error;
  co_await socket.async_connect(to, asio::redirect_error(asio::use_awaitable, error));
  co_return !error && socket.is_open();
}

}  // namespace

Door::Door(const Endpoint& at, const Key& key) : acceptor_(Loop::shared().io()), key_(key) {
  std::error_code error;
  acceptor_.open(at.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && at.protocol() == asio::ip::tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor_.bind(at, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw Error(Code::io, "cannot listen: " + error.message(), show(at), at.port() ? "choose another port" : "");
  endpoint_ = acceptor_.local_endpoint();
  guard_ = ForkGuard(acceptor_.native_handle());
}

Door::Door(int listening_fd, const Key& key) : acceptor_(Loop::shared().io()), key_(key) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  std::error_code error;
  if (getsockname(listening_fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    throw Error(Code::io, "the descriptor handed over is not a listening socket");
  }
  acceptor_.assign(name.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), listening_fd, error);
  if (error) throw Error(Code::io, "the descriptor handed over is not a listening socket: " + error.message());
  endpoint_ = acceptor_.local_endpoint();
  guard_ = ForkGuard(acceptor_.native_handle());
}

void Door::open(Welcome welcome, Admit admit) {
  welcome_ = std::move(welcome);
  admit_ = std::move(admit);
  asio::co_spawn(Loop::shared().io(), accept_all(shared_from_this()), asio::detached);
}

void Door::close() {
  guard_ = ForkGuard();
  std::error_code ignored;
  acceptor_.close(ignored);
  welcome_ = nullptr;
  admit_ = nullptr;
}

asio::awaitable<void> Door::accept_all(std::shared_ptr<Door> self) {
  while (self->acceptor_.is_open()) {
    std::error_code error;
    Socket socket = co_await self->acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!self->acceptor_.is_open()) co_return;
    if (error) {
      co_await pause(kPause);  // out of descriptors, most likely: others may free some
      continue;
    }
    if (self->handshakes_ >= kHandshakes) continue;
    ++self->handshakes_;
    asio::co_spawn(Loop::shared().io(), admit_one(self, std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> Door::admit_one(std::shared_ptr<Door> self, Socket socket) {
  ForkGuard guard(socket.native_handle());
  const Endpoint from = other_end(socket);
  bool member = false;  // it knows the secret; whether it is wanted here and now is another question
  const std::function<bool(const Purpose&)> welcome = [self, &member](const Purpose& p) {
    member = true;
    return self->welcome_ && self->welcome_(p);
  };
  const std::optional<Purpose> purpose = co_await prove_as_listener(socket, self->key_, welcome);
  --self->handshakes_;
  if (!purpose) {
    if (!member && self->acceptor_.is_open()) self->stranger(show(from));
  } else if (self->admit_) {
    self->admit_(std::move(socket), *purpose);
  }
}

void Door::stranger(const std::string& from) {
  if (strangers_.fetch_add(1) > 0) return;
  std::fprintf(stderr, "shoal: refused a connection from %s that did not prove the secret of this job; more are only counted\n",
               from.c_str());
}

asio::awaitable<std::optional<Socket>> dial(std::vector<Endpoint> candidates, Key key, Purpose purpose, Instant deadline,
                                            std::function<bool()> wanted) {
  while (wanted() && steady_now() < deadline) {
    for (const Endpoint& candidate : candidates) {
      if (!wanted() || steady_now() >= deadline) co_return std::nullopt;
      Socket socket(Loop::shared().io());
      std::error_code error;
      socket.open(candidate.protocol(), error);
      if (error) continue;
      const ForkGuard guard(socket.native_handle());
      if (!co_await connect(socket, candidate)) continue;
      if (co_await prove_as_dialer(socket, key, purpose)) co_return std::move(socket);
    }
    co_await pause(kPause);
  }
  co_return std::nullopt;
}

}  // namespace shoal::net
