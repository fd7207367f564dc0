#include "shoal/net/host_space.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace shoal::net {

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

const char* become_member(const HostSpace& host, pid_t launcher) {
  if (::setpgid(0, 0) != 0) return "setpgid";
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "prctl";
  if (::getppid() != launcher) ::_exit(128 + SIGKILL);  // it died before prctl
  return enter(host);
}

}  // namespace shoal::net
