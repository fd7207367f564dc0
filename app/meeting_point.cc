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

Listening listen_at(const std::string& address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  socklen_t size = sizeof at;
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return {-1, 0, errno};
  }
  return {fd.release(), ntohs(at.sin_port), 0};
}

// A socket belongs to the network in which it was made, whichever thread uses it later; so a thread goes
// there and ends.
Listening listen_inside(const LabHost& host) {
  Listening made;
  std::thread([&] {
    const Descriptor network(::open(host.space().network.c_str(), O_RDONLY | O_CLOEXEC));
    if (!network || ::setns(network.get(), CLONE_NEWNET) != 0) {
      made.error = errno;
      return;
    }
    made = listen_at(host.address);
  }).join();
  return made;
}

}  // namespace

MeetingPoint::MeetingPoint(const LabHost* host) : secret_(random_hex(32)) {
  const std::string address = host ? host->address : "127.0.0.1";
  const Listening made = host ? listen_inside(*host) : listen_at(address);
  if (made.fd < 0) {
    const bool forbidden = made.error == EPERM || made.error == EACCES;
    throw Error(forbidden ? Code::unsupported : Code::io,
                std::string("cannot listen: ") + std::strerror(made.error),
                host ? host->name + " (" + address + ")" : address,
                forbidden ? "members of a lab are started by root" : "");
  }
  coordinator_ = std::make_unique<net::Coordinator>(secret_, made.fd);
  address_ = address + ":" + std::to_string(made.port);
}

MeetingPoint::~MeetingPoint() = default;

}  // namespace shoal::app
