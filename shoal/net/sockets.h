// What the kernel says about this machine's sockets and addresses, and the options Shoal's connections use.
// Forked children (data loaders) must not hold connections open: every socket is registered while it lives and
// closed in the child. Threads: any.
#pragma once

#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/core/time.h"

namespace shoal::net {

using Socket = asio::ip::tcp::socket;
using Endpoint = asio::ip::tcp::endpoint;

// Registered from construction to destruction: keeps a socket out of forked and executed children. The socket may be
// closed before: what took over its number since then is left alone.
class ForkGuard {
 public:
  ForkGuard() = default;
  explicit ForkGuard(int fd);
  ForkGuard(ForkGuard&& other) noexcept : socket_(std::exchange(other.socket_, {})) {}
  ForkGuard& operator=(ForkGuard&& other) noexcept;
  ~ForkGuard();

  struct Guarded {
    int fd = -1;
    std::uint64_t identity = 0;  // the kernel's number of the socket itself
    bool operator==(const Guarded&) const = default;
  };

 private:
  Guarded socket_;
};
void sockets_before_fork();
void sockets_after_fork_parent();
void sockets_after_fork_child();  // closes every registered socket

void set_connection_options(Socket& socket);                       // no delay; the kernel does not give it up for as long as it can be told
void let_go(Socket& socket);                                       // what is not acknowledged is of no use any more, and is sent again for seconds only
void set_unsent_mark(Socket& socket, std::size_t bytes);           // TCP_NOTSENT_LOWAT
std::size_t unacknowledged(Socket& socket);                        // bytes the peer's kernel does not have yet
std::size_t unsent(Socket& socket);                                // of these, what is not on the network either

// Who is connected; an IPv4 address as such, also where the socket is one of IPv6. Port 0 if nobody is any more.
Endpoint other_end(const Socket& socket);
bool over_loopback(const Socket& socket);  // no network in between

struct LocalAddress {
  asio::ip::address address;
  unsigned prefix_length = 0;
};
// Addresses of the interfaces that are up (of `interface` alone, if given); loopback only if nothing else is there.
// Throws Error{invalid_argument} if `interface` has none.
std::vector<LocalAddress> local_addresses(const std::string& interface);

std::string boot_identity();   // boot id + network namespace: equal on two members of one host

// "10.77.0.2:40123", "[::1]:40123".
std::string show(const Endpoint& endpoint);
std::optional<Endpoint> parse_endpoint(std::string_view text);

}  // namespace shoal::net
