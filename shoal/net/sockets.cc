#include "shoal/net/sockets.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <mutex>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/host.h"

namespace shoal::net {
namespace {

std::mutex registry_mutex;  // guards `registry`
std::vector<ForkGuard::Guarded>& registry() {
  static auto* sockets = new std::vector<ForkGuard::Guarded>;  // outlives every static socket
  return *sockets;
}

// 0 for what is no open socket. Safe between fork and exec.
std::uint64_t identity_of(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) ? about.st_ino : 0;
}

unsigned prefix_bits(const sockaddr* mask) {
  if (!mask) return 0;
  if (mask->sa_family == AF_INET) {
    return static_cast<unsigned>(std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr));
  }
  unsigned bits = 0;
  for (const unsigned char byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
    bits += static_cast<unsigned>(std::popcount(byte));
  }
  return bits;
}

std::optional<asio::ip::address> address_of(const sockaddr* at) {
  if (!at) return {};
  if (at->sa_family == AF_INET) {
    return asio::ip::address_v4(ntohl(reinterpret_cast<const sockaddr_in*>(at)->sin_addr.s_addr));
  }
  if (at->sa_family != AF_INET6) return {};
  asio::ip::address_v6::bytes_type bytes;
  std::copy_n(reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr.s6_addr, bytes.size(), bytes.begin());
  asio::ip::address_v6 address(bytes);
  if (address.is_link_local()) return {};  // needs a scope that only its own host knows
  return address;
}

}  // namespace

ForkGuard::ForkGuard(int fd) : socket_{fd, identity_of(fd)} {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const std::lock_guard lock(registry_mutex);
  registry().push_back(socket_);
}

ForkGuard::~ForkGuard() {
  if (socket_.fd < 0) return;
  const std::lock_guard lock(registry_mutex);
  const auto found = std::find(registry().begin(), registry().end(), socket_);
  if (found != registry().end()) registry().erase(found);
}

ForkGuard& ForkGuard::operator=(ForkGuard&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}

void sockets_before_fork() { registry_mutex.lock(); }
void sockets_after_fork_parent() { registry_mutex.unlock(); }
void sockets_after_fork_child() {
  for (const auto& socket : registry()) {
    if (socket.identity != 0 && identity_of(socket.fd) == socket.identity) ::close(socket.fd);
  }
  registry().clear();
  registry_mutex.unlock();
}

// The kernel's judgement is not asked for: its time runs from the first packet that was sent again of recoveries that follow each other, which on a link that is
// always full is minutes. Of four members in a ring at 20 Mbit/s a connection with 60 s of TCP_USER_TIMEOUT was ended 266 s behind its only TcpExtTCPTimeouts
// (TcpExtTCPAbortOnTimeout 1, Linux 6.18) while its bytes arrived.
void set_connection_options(Socket& socket) {
  const int fd = socket.native_handle();
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int never = std::numeric_limits<int>::max();  // ms; 0 would be about a quarter of an hour
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
  socket.non_blocking(true);
}

void let_go(Socket& socket) {
  constexpr int kMilliseconds = 10'000;
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kMilliseconds, sizeof kMilliseconds);
}

void set_unsent_mark(Socket& socket, std::size_t bytes) {
  const auto mark = static_cast<unsigned>(bytes);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &mark, sizeof mark);
}

namespace {

std::size_t bytes_in(Socket& socket, unsigned long which) {
  int bytes = 0;
  if (ioctl(socket.native_handle(), which, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

}  // namespace

std::size_t unacknowledged(Socket& socket) { return bytes_in(socket, SIOCOUTQ); }
std::size_t unsent(Socket& socket) { return bytes_in(socket, SIOCOUTQNSD); }

Endpoint other_end(const Socket& socket) {
  std::error_code gone;
  Endpoint end = socket.remote_endpoint(gone);
  if (gone || !end.address().is_v6() || !end.address().to_v6().is_v4_mapped()) return end;
  return {asio::ip::make_address_v4(asio::ip::v4_mapped, end.address().to_v6()), end.port()};
}

bool over_loopback(const Socket& socket) { return other_end(socket).address().is_loopback(); }

std::vector<LocalAddress> local_addresses(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw Error(Code::io, "cannot list this machine's network addresses");
  std::vector<LocalAddress> found, loopback;
  bool there = false;
  std::vector<std::string> usable;  // names
  for (const ifaddrs* at = list; at; at = at->ifa_next) {
    there = there || interface == at->ifa_name;
    const auto address = address_of(at->ifa_addr);
    if (!(at->ifa_flags & IFF_UP) || !address) continue;
    if (std::find(usable.begin(), usable.end(), at->ifa_name) == usable.end()) usable.emplace_back(at->ifa_name);
    if (!interface.empty() && interface != at->ifa_name) continue;
    auto& into = (at->ifa_flags & IFF_LOOPBACK) && interface.empty() ? loopback : found;
    into.push_back({*address, prefix_bits(at->ifa_netmask)});
  }
  freeifaddrs(list);
  if (!interface.empty() && found.empty()) {
    std::string names;
    for (const std::string& name : usable) names += (names.empty() ? "" : ", ") + name;
    throw Error(Code::invalid_argument,
                there ? "interface " + interface + " of " + host_name() + " is down or has no address that is not link-local"
                      : host_name() + " has no interface " + interface,
                "SHOAL_INTERFACE", usable.empty() ? "none is up" : "those that are up: " + names);
  }
  return found.empty() ? loopback : found;
}

std::string boot_identity() {
  std::string id = boot_id();
  struct stat space {};
  if (stat("/proc/self/ns/net", &space) == 0) id += "/" + std::to_string(space.st_ino);
  return id;
}

std::string show(const Endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) return {};
  std::error_code bad;
  const auto address = asio::ip::make_address(std::string(host), bad);
  if (bad) return {};
  return Endpoint(address, port);
}

}  // namespace shoal::net
