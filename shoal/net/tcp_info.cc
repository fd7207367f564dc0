// Alone in its file: <linux/tcp.h> knows more than <netinet/tcp.h>, which Asio includes, and the two exclude each other.
#include "shoal/net/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace shoal::net {

Nanoseconds shortest_round_trip(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  const bool known = size >= offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt && info.tcpi_min_rtt != ~0u;
  return known ? std::chrono::microseconds(info.tcpi_min_rtt) : Nanoseconds{};
}

}  // namespace shoal::net
