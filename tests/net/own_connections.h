// Faults of single TCP connections, made from inside of the process that has them: what a cable, a router or a peer's kernel may do, without
// privileges and without a proxy that would itself have to be trusted. A connection goes by its ports, "own>other", so that both ends can be
// told of it.
#pragma once

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace shoal::net {

struct OwnConnection {
  int fd = -1;
  std::uint16_t own = 0, other = 0;  // ports
  std::string name() const { return std::to_string(own) + ">" + std::to_string(other); }
};

inline std::vector<OwnConnection> own_connections() {
  std::vector<OwnConnection> all;
  const auto port = [](const sockaddr_storage& at) {
    if (at.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(at).sin_port);
    return at.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(at).sin6_port) : std::uint16_t{0};
  };
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_storage own{}, other{};
    socklen_t own_size = sizeof own, other_size = sizeof other;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) != 0) continue;
    if (port(own) != 0 && port(other) != 0) all.push_back({fd, port(own), port(other)});
  }
  return all;
}

// Closed in order: both ends read to the end.
inline void cut(const OwnConnection& connection) { shutdown(connection.fd, SHUT_RDWR); }

// The other end's next word to us is refused.
inline void refuse(const OwnConnection& connection) {
  const sockaddr nobody{AF_UNSPEC, {}};
  connect(connection.fd, &nobody, sizeof nobody);
}

template <std::size_t N>
void filter(const OwnConnection& connection, sock_filter (&instructions)[N]) {
  const sock_fprog program{N, instructions};
  if (setsockopt(connection.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) throw std::runtime_error("SO_ATTACH_FILTER");
}

// A black hole: what comes from now on is dropped before TCP sees it, neither delivered nor acknowledged. For both directions, at both ends.
inline void darken(const OwnConnection& connection) {
  sock_filter take_nothing[] = {{BPF_RET | BPF_K, 0, 0, 0}};
  filter(connection, take_nothing);
}

// A bad cable: of what comes from now on `share` is dropped at random before TCP sees it, so the other end sends it again.
inline void lose(const OwnConnection& connection, double share) {
  sock_filter take_most[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM)},
                             {BPF_JMP | BPF_JGE | BPF_K, 1, 0, static_cast<std::uint32_t>(share * 4294967296.0)},
                             {BPF_RET | BPF_K, 0, 0, 0},
                             {BPF_RET | BPF_K, 0, 0, 0xffffffff}};
  filter(connection, take_most);
}

// A path on which large packets vanish and small ones arrive: heartbeats do, and what they speak of does not. Until heal().
inline void swallow_large(const OwnConnection& connection) {
  sock_filter take_small[] = {{BPF_LD | BPF_W | BPF_LEN, 0, 0, 0},
                              {BPF_JMP | BPF_JGT | BPF_K, 1, 0, 4096},
                              {BPF_RET | BPF_K, 0, 0, 0xffffffff},
                              {BPF_RET | BPF_K, 0, 0, 0}};
  filter(connection, take_small);
}
inline void heal(const OwnConnection& connection) {
  const int nothing = 0;
  if (setsockopt(connection.fd, SOL_SOCKET, SO_DETACH_FILTER, &nothing, sizeof nothing) != 0) throw std::runtime_error("SO_DETACH_FILTER");
}

}  // namespace shoal::net
