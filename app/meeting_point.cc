#include "app/meeting_point.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "shoal/core/error.h"
#include "shoal/core/random.h"
#include "shoal/net/coordinator.h"

namespace shoal::app {
namespace {

struct Listening {
  int fd = -1;
  int port = 0;
  int error = 0;
};

Listening listen_at(const std::string& address, int port) {
  sockaddr_in at{};
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  socklen_t size = sizeof at;
  net::Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return {-1, 0, errno};
  }
  return {fd.release(), ntohs(at.sin_port), 0};
}

Listening listen_at(const std::string& address, net::PortRange ports) {
  Listening made;
  for (int port = ports.first; port <= ports.last; ++port) {
    made = listen_at(address, port);
    if (made.error != EADDRINUSE) break;
  }
  return made;
}

// A socket belongs to the network in which it was made, whichever thread uses it later; so a thread goes
// there and ends.
Listening listen_inside(const LabHost& host, net::PortRange ports) {
  Listening made;
  std::thread([&] {
    const net::Descriptor network(::open(host.space().network.c_str(), O_RDONLY | O_CLOEXEC));
    if (!network || ::setns(network.get(), CLONE_NEWNET) != 0) {
      made.error = errno;
      return;
    }
    made = listen_at(host.address, ports);
  }).join();
  return made;
}

}  // namespace

MeetingPoint::MeetingPoint(const net::JoinOptions& where, const std::string& job, unsigned members)
    : secret_(net::find_secret().value_or(random_hex(32))),
      coordinator_(std::make_unique<net::Coordinator>(secret_, where, job, members)) {
  address_ = coordinator_->addresses();
}

MeetingPoint::MeetingPoint(const LabHost* host, const net::JoinOptions& where, const std::string& job, unsigned members)
    : secret_(random_hex(32)) {
  const std::string address = host ? host->address : "127.0.0.1";
  const Listening made = host ? listen_inside(*host, where.ports) : listen_at(address, where.ports);
  if (made.fd < 0) {
    const bool forbidden = made.error == EPERM || made.error == EACCES;
    const bool taken = made.error == EADDRINUSE;
    throw Error(forbidden ? Code::unsupported : taken ? Code::invalid_argument : Code::io,
                std::string("cannot listen: ") + std::strerror(made.error),
                host ? host->name + " (" + address + ")" : address,
                forbidden ? "members of a lab are started by root" : taken ? "choose another --port-range" : "");
  }
  coordinator_ = std::make_unique<net::Coordinator>(secret_, made.fd, job, members);
  address_ = address + ":" + std::to_string(made.port);
}

MeetingPoint::~MeetingPoint() = default;

}  // namespace shoal::app
