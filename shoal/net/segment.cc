#include "shoal/net/segment.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace shoal::net {
namespace {

constexpr int kStrangeMessages = 64;  // thrown away before a mailbox is given up

std::string because(const std::string& what) { return what + " (" + std::strerror(errno) + ")"; }

// A name in the abstract namespace: a zero byte first.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

constexpr int kEnclosed = 3;  // at most

// A datagram of a segment's number, which brings its memory, its maker's bell and, if there is one, its maker's arena.
struct Letter {
  SegmentNumber number{};
  iovec text{number.data(), number.size()};
  alignas(cmsghdr) char enclosed[CMSG_SPACE(kEnclosed * sizeof(int))] = {};
  msghdr message{};

  Letter() {
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = enclosed;
    message.msg_controllen = sizeof enclosed;
  }
  Letter(const Letter&) = delete;
};

}  // namespace

Mapping::Mapping(int memory) : all_(memory, sizeof(Shared), SealedMapping::Access::write) { all_.keep_from_children(); }

OwnSegment::OwnSegment() : memory_(sealed_file("shoal segment", sizeof(Shared))), shared_(memory_.get()) {
  if (!shared_) {
    why_not_ = because("this system gives no memory for it");
    return;
  }
  new (&*shared_) Shared;
  randombytes_buf(number_.data(), number_.size());
}

std::string OwnSegment::pass(const std::string& mailbox, int bell, int arena) {
  if (!shared_) return why_not_;
  if (bell < 0) return "this system gives no eventfd";
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un to;
  Letter letter;
  letter.number = number_;
  letter.message.msg_name = &to;
  letter.message.msg_namelen = address_of(mailbox, to);
  cmsghdr* header = CMSG_FIRSTHDR(&letter.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  const int enclosed[kEnclosed] = {memory_.get(), bell, arena};
  const std::size_t bytes = (arena < 0 ? kEnclosed - 1 : kEnclosed) * sizeof(int);
  header->cmsg_len = CMSG_LEN(bytes);
  letter.message.msg_controllen = CMSG_SPACE(bytes);
  std::memcpy(CMSG_DATA(header), enclosed, bytes);
  if (!socket || sendmsg(socket.get(), &letter.message, MSG_NOSIGNAL) < 0) return because("it cannot be passed on");
  memory_.reset();
  return {};
}

void OtherSegment::wake() const {
  if (shared->asleep.load() != 0 && shared->asleep.exchange(0) != 0) eventfd_write(bell.get(), 1);
}

Mailbox::Mailbox() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);  // the kernel chooses a name
  if (!socket_ || bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return;
  size = sizeof address;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
  const std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
  if (size > before) name_.assign(address.sun_path + 1, size - before);
}

std::string Mailbox::take(const SegmentNumber& number, OtherSegment& into) const {
  for (int i = 0; i < kStrangeMessages; ++i) {
    Letter letter;
    const ssize_t got = recvmsg(socket_.get(), &letter.message, MSG_CMSG_CLOEXEC);
    if (got < 0) return because("it has not come");
    Descriptor enclosed[kEnclosed];
    for (cmsghdr* header = CMSG_FIRSTHDR(&letter.message); header; header = CMSG_NXTHDR(&letter.message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t k = 0; k < std::min<std::size_t>(count, kEnclosed); ++k) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + k * sizeof fd, sizeof fd);
        enclosed[k] = Descriptor(fd);
      }
    }
    if (got != static_cast<ssize_t>(number.size()) || sodium_memcmp(letter.number.data(), number.data(), number.size()) != 0) continue;
    into = {Mapping(enclosed[0].get()), std::move(enclosed[1]), enclosed[2] ? ArenaView(enclosed[2].get()) : ArenaView()};
    return into.shared && into.bell ? std::string() : because("it cannot be mapped");
  }
  return "others write to where it should come";
}

}  // namespace shoal::net
