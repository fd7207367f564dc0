#include "shoal/net/dial.h"

#include <asio/ip/v6_only.hpp>
#include <cerrno>
#include <cstdio>

#include "shoal/core/error.h"
#include "shoal/net/spawn.h"
#include "shoal/net/whole.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

// Under way at once. More wait in the kernel's queue: a connection that is closed reads like a refusal.
constexpr int kHandshakes = 256;
constexpr Nanoseconds kConnectPatience = 1500ms;  // for one candidate
constexpr Nanoseconds kDialPause = 50ms;           // before all candidates are tried again

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
  const bool taken = error.value() == EADDRINUSE, elsewhere = error.value() == EADDRNOTAVAIL;
  if (error) {
    throw Error(taken || elsewhere ? Code::invalid_argument : Code::io, "cannot listen: " + error.message(), show(at),
                elsewhere ? "this machine does not have that address" : at.port() ? "choose another port" : "");
  }
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

void Door::open(Welcome welcome, Admit admit, Refused refused) {
  welcome_ = std::move(welcome);
  admit_ = std::move(admit);
  refused_ = std::move(refused);
  spawn(accept_all(shared_from_this()));
}

void Door::close() {
  guard_ = ForkGuard();
  std::error_code ignored;
  acceptor_.close(ignored);
  welcome_ = nullptr;
  admit_ = nullptr;
  refused_ = nullptr;
}

asio::awaitable<void> Door::accept_all(std::shared_ptr<Door> self) {
  while (self->acceptor_.is_open()) {
    if (self->handshakes_ >= kHandshakes) {
      co_await pause(kDialPause);
      continue;
    }
    std::error_code error;
    Socket socket = co_await self->acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!self->acceptor_.is_open()) co_return;
    if (error) {
      co_await pause(kDialPause);  // out of descriptors, most likely: others may free some
      continue;
    }
    ++self->handshakes_;
    spawn(admit_one(self, std::move(socket)));
  }
}

asio::awaitable<void> Door::admit_one(std::shared_ptr<Door> self, Socket socket) {
  ForkGuard guard(socket.native_handle());
  const Endpoint from = other_end(socket);
  bool member = false;  // it knows the secret; whether it is wanted here and now is another question
  const std::function<Answer(const Purpose&)> welcome = [self, &member](const Purpose& p) {
    member = true;
    return self->welcome_ ? self->welcome_(p) : Answer::busy;
  };
  const Heard heard = co_await prove_as_listener(socket, self->key_, welcome);
  --self->handshakes_;
  if (!self->acceptor_.is_open()) co_return;
  if (heard.proved) {
    self->admit_(std::move(socket), *heard.proved);
  } else if (!member) {
    self->stranger(show(from));
    if (heard.claimed && self->refused_) self->refused_(*heard.claimed, from);
  }
}

void Door::stranger(const std::string& from) {
  if (strangers_.fetch_add(1) > 0) return;
  std::fprintf(stderr, "shoal: refused a connection from %s that did not prove the secret of this job; more are only counted\n",
               from.c_str());
}

asio::awaitable<Dialled> knock(std::vector<Endpoint> candidates, Key key, Purpose purpose) {
  Dialled last;
  for (const Endpoint& candidate : candidates) {
    Socket socket(Loop::shared().io());
    std::error_code error;
    socket.open(candidate.protocol(), error);
    if (error) continue;
    const ForkGuard guard(socket.native_handle());
    if (!co_await connect(socket, candidate)) continue;
    const Answer answer = co_await prove_as_dialer(socket, key, purpose);
    if (answer == Answer::welcome) co_return Dialled{std::move(socket), answer, candidate};
    if (answer != Answer::silent || last.answer == Answer::silent) last = {std::nullopt, answer, candidate};
    if (answer == Answer::taken || answer == Answer::stale || answer == Answer::elsewhere) break;
  }
  co_return last;
}

asio::awaitable<Dialled> dial(std::vector<Endpoint> candidates, Key key, Purpose purpose, Instant deadline,
                              std::function<bool()> wanted) {
  while (wanted() && steady_now() < deadline) {
    Dialled came = co_await knock(candidates, key, purpose);
    if (came.answer == Answer::welcome || came.answer == Answer::taken || came.answer == Answer::stale) co_return came;
    co_await pause(kDialPause);
  }
  co_return Dialled{};
}

}  // namespace shoal::net
