#include "shoal/core/host_space.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace shoal {

const char* enter(const HostSpace& host) {
  if (host.network.empty()) return nullptr;
  const int fd = ::open(host.network.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open its network namespace";
  const int entered = ::setns(fd, CLONE_NEWNET);
  ::close(fd);
  if (entered != 0) return "enter its network namespace";
  if (::unshare(CLONE_NEWUTS | CLONE_NEWNS) != 0) return "unshare";
  if (::sethostname(host.name.data(), host.name.size()) != 0) return "set its host name";
  // /sys shows the network of whoever mounted it. Where that is not permitted programs still work, but see
  // this machine's interfaces there.
  if (::mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) == 0 && ::umount2("/sys", MNT_DETACH) == 0) {
    (void)!::mount("sysfs", "/sys", "sysfs", 0, nullptr);
  }
  return nullptr;
}

}  // namespace shoal
