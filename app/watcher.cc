#include "app/watcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "app/processes.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kStuck = 10s;  // with processes that are stuck in the kernel
constexpr int look_each_ms = 10;
constexpr const char* own_name = "shoal-watcher";

// Again until none is left: they may be starting others while they are found. A watcher carries its launcher's environment, so
// that of a run inside this run has our mark, too; it has work of its own to finish.
void kill_marked(const std::string& mark) {
  const Instant start = steady_now();
  for (bool any = true; any && steady_now() - start < kStuck;) {
    any = false;
    for (const pid_t pid : processes_with(mark)) {
      if (name_of(pid) == own_name) continue;
      any = true;
      ::kill(pid, SIGKILL);
    }
    if (any) ::poll(nullptr, 0, look_each_ms);
  }
}

[[noreturn]] void watch(int end_of_launcher, const std::string& mark) {
  ::setsid();  // a terminal's signals are not for it
  ::prctl(PR_SET_NAME, own_name);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int stream : {0, 1, 2}) ::dup2(nothing, stream);  // whoever reads the launcher's output sees its end
  char byte;
  while (::read(end_of_launcher, &byte, 1) < 0 && errno == EINTR) {
  }
  kill_marked(mark);
  ::_exit(0);
}

}  // namespace

Watcher::Watcher(const std::string& mark) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(Code::io, std::string("cannot make a pipe: ") + std::strerror(errno));
  const net::Descriptor read(ends[0]);
  alive_ = net::Descriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw Error(Code::io, std::string("cannot start a process: ") + std::strerror(errno));
  if (pid_ == 0) {
    alive_.reset();
    watch(read.get(), mark);
  }
}

Watcher::~Watcher() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace shoal::app
