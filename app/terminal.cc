#include "app/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace shoal::app {
namespace {

// Writes all of it unless the reader is gone or reads nothing for 5 s: a stuck terminal must not stop a run.
void write_patiently(int fd, std::string_view text) {
  while (!text.empty()) {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, 5000) <= 0) return;
    // A pipe that polls writable takes PIPE_BUF bytes without blocking.
    const ssize_t wrote = ::write(fd, text.data(), std::min<std::size_t>(text.size(), 4096));
    if (wrote < 0 && errno != EINTR && errno != EAGAIN) return;
    if (wrote > 0) text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

Console::Screen screen(int fd) {
  Console::Screen made;
  made.terminal = ::isatty(fd);
  made.colour = made.terminal && !std::getenv("NO_COLOR");
  winsize size{};
  if (made.terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) made.columns = size.ws_col;
  made.write = [fd](std::string_view text) { write_patiently(fd, text); };
  return made;
}

}  // namespace shoal::app
