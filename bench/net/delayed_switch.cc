// A switch that keeps each frame for a while: latency between the hosts of a lab whose kernel has none to give (no netem).
//
//   ip netns exec shoal-NAME-sw bench_net_delayed_switch MILLISECONDS p0 p1 ...
//
// The ports are those of the lab's switch (app/lab.h), taken off their bridge. Frames go to the port where their address was seen, or to all others,
// MILLISECONDS after they came, in their order; large ones stay whole, as on the bridge. Prints "ready" and goes on until it is ended.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "shoal/core/time.h"

namespace shoal {
namespace {

constexpr std::size_t kOffloads = 10;  // bytes of a virtio_net_hdr, whose own file is not C++: what was left to the network card, checksums and segments
constexpr int kAtOnce = 64;              // frames of a port, before others have their turn and what is due goes

using Address = std::array<unsigned char, ETH_ALEN>;

struct Frame {
  Instant due;
  std::size_t from;
  std::vector<unsigned char> bytes;  // kOffloads, and the frame

  Address address(std::size_t at) const {
    Address address;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(kOffloads + at), address.size(), address.begin());
    return address;
  }
  Address to() const { return address(0); }
  Address by() const { return address(ETH_ALEN); }
};

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

void set(int socket, int level, int option, int value) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) fail("setsockopt");
}

int open_port(const std::string& name) {
  const int port = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (port < 0) fail("a packet socket");
  set(port, SOL_PACKET, PACKET_VNET_HDR, 1);
  set(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
  set(port, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
  set(port, SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
  if (address.sll_ifindex == 0 || bind(port, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail(name);
  return port;
}

class Switch {
 public:
  Switch(Nanoseconds delay, const std::vector<std::string>& names) : delay_(delay) {
    for (const auto& name : names) ports_.push_back({.fd = open_port(name), .events = POLLIN, .revents = 0});
  }

  [[noreturn]] void run() {
    for (;;) {
      const Nanoseconds left = waiting_.empty() ? Nanoseconds(std::chrono::hours(1)) : std::max(waiting_.front().due - steady_now(), Nanoseconds(0));
      const timespec patience{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
      if (ppoll(ports_.data(), ports_.size(), &patience, nullptr) < 0 && errno != EINTR) fail("ppoll");
      for (std::size_t port = 0; port < ports_.size(); ++port) {
        if (ports_[port].revents != 0) take_in(port);
      }
      for (; !waiting_.empty() && waiting_.front().due <= steady_now(); waiting_.pop_front()) pass(waiting_.front());
    }
  }

 private:
  void take_in(std::size_t port) {
    for (int frames = 0; frames < kAtOnce; ++frames) {
      const ssize_t size = recv(ports_[port].fd, buffer_.data(), buffer_.size(), 0);
      if (size <= 0) return;
      if (static_cast<std::size_t>(size) < kOffloads + ETH_HLEN) continue;
      waiting_.push_back({steady_now() + delay_, port, {buffer_.begin(), buffer_.begin() + size}});
      seen_[waiting_.back().by()] = port;
    }
  }

  // What a full queue does not take is lost, as in a switch.
  void pass(const Frame& frame) {
    const auto at = seen_.find(frame.to());
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      if (at == seen_.end() ? port == frame.from : port != at->second) continue;
      if (send(ports_[port].fd, frame.bytes.data(), frame.bytes.size(), 0) < 0 && errno != EAGAIN && errno != ENOBUFS) fail("send");
    }
  }

  const Nanoseconds delay_;
  std::vector<pollfd> ports_;
  std::map<Address, std::size_t> seen_;  // at which port
  std::deque<Frame> waiting_;
  std::vector<unsigned char> buffer_ = std::vector<unsigned char>(1 << 17);
};

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "bench_net_delayed_switch: say milliseconds and ports\n");
    return 2;
  }
  try {
    const auto delay = std::chrono::duration_cast<shoal::Nanoseconds>(shoal::Seconds(std::atof(argv[1]) * 1e-3));
    shoal::Switch between(delay, {argv + 2, argv + argc});
    std::printf("ready\n");
    std::fflush(stdout);
    between.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_net_delayed_switch: %s\n", error.what());
    return 1;
  }
}
