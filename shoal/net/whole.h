// Whole messages over a socket, in coroutines, and a bound on how long they may take. For what opens a connection and
// for the coordinator; a peer's frames have their own reader and writer (peer.h). On the loop.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <memory>

#include "shoal/net/sockets.h"

namespace shoal::net {

// Closes the socket when its time is over, which ends every pending call on it; never after its own end, however late the
// timer's handler runs. The socket outlives it and does not move meanwhile.
class Deadline {
 public:
  Deadline(Socket& socket, std::chrono::steady_clock::duration after)
      : timer_(std::make_shared<asio::steady_timer>(socket.get_executor(), after)) {
    timer_->async_wait([&socket, timer = timer_](const std::error_code& cancelled) {
      std::error_code ignored;
      if (!cancelled && timer->expiry() <= std::chrono::steady_clock::now()) socket.close(ignored);
    });
  }
  ~Deadline() { timer_->expires_at(std::chrono::steady_clock::time_point::max()); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::shared_ptr<asio::steady_timer> timer_;
};

// Fills an array or a string; false if the connection ends before. A string of no bytes needs nothing from the other side.
template <typename Bytes>
asio::awaitable<bool> read_all(Socket& socket, Bytes& into) {
  std::error_code error;
  co_await asio::async_read(socket, asio::buffer(into), asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

template <typename Bytes>
asio::awaitable<bool> write_all(Socket& socket, const Bytes& bytes) {
  std::error_code error;
  co_await asio::async_write(socket, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

}  // namespace shoal::net
