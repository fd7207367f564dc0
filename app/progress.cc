#include "app/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace shoal::app {
namespace {

constexpr Nanoseconds kRedrawn = std::chrono::milliseconds(100), kSaid = std::chrono::seconds(10);
constexpr int kBar = 30;  // cells

int columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(bool shown) : shown_(shown), terminal_(::isatty(STDERR_FILENO) != 0), last_(steady_now()) {}

bool Progress::due() const { return shown_ && steady_now() - last_ >= (terminal_ ? kRedrawn : kSaid); }

void Progress::at(const std::string& what, double part) {
  if (!due()) return;
  last_ = steady_now();
  if (!terminal_) return fmt::print(stderr, "{}: {:.0f} %\n", what, 100 * part);
  // A line that the terminal would wrap could not be taken back.
  const std::string percent = fmt::format(" {:.0f} %", 100 * part);
  const int room = columns() - 1 - static_cast<int>(percent.size()), bar = std::min(kBar, room - static_cast<int>(what.size()) - 3);
  fmt::print(stderr, "\r\x1b[K{}", what.substr(0, static_cast<std::size_t>(std::max(0, room))));
  if (bar > 0) fmt::print(stderr, " [{:<{}}]", std::string(static_cast<std::size_t>(std::clamp(static_cast<int>(part * bar), 0, bar)), '#'), bar);
  fmt::print(stderr, "{}", percent);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace shoal::app
