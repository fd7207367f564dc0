#include "app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace shoal::app {
namespace {

constexpr Nanoseconds kRedrawn = std::chrono::milliseconds(100), kSaid = std::chrono::seconds(10);
constexpr int kBar = 30;  // cells

}  // namespace

Progress::Progress(bool shown) : shown_(shown), terminal_(::isatty(STDERR_FILENO) != 0), last_(steady_now()) {}

void Progress::at(const std::string& what, double part) {
  if (!shown_ || steady_now() - last_ < (terminal_ ? kRedrawn : kSaid)) return;
  last_ = steady_now();
  if (!terminal_) return fmt::print(stderr, "{}: {:.0f} %\n", what, 100 * part);
  const int full = std::clamp(static_cast<int>(part * kBar), 0, kBar);
  fmt::print(stderr, "\r\x1b[K{} [{:<{}}] {:.0f} %", what, std::string(static_cast<std::size_t>(full), '#'), kBar, 100 * part);
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
