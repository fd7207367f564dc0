#include "app/spares.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <regex>
#include <utility>

#include <fmt/format.h>

#include "app/assignment.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kPause = 2s;  // its imports take a second of a core, which members want first that go on

// Imports see what they would see in a cold process: the script's folder in front, or for a module this one.
constexpr const char* kStandBy = R"(import os, sys
if not sys.flags.safe_path:
    sys.path[0] = os.getcwd() if sys.argv[1] == "-m" else os.path.dirname(os.path.realpath(sys.argv[1]))
from shoal import spare
spare.stand_by()
)";

// Or has been collected already.
bool has_ended(pid_t pid) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0;
}

std::string last_words_in(int fd) {
  std::string text(64 * 1024, '\0');  // as much as a pipe holds
  const ssize_t got = ::read(fd, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return last_line(std::move(text));
}

}  // namespace

std::optional<std::vector<std::string>> standing_by(const std::vector<std::string>& command) {
  static const std::regex python("python(3(\\.[0-9]+)?)?"), flags("-[bBdEIOPqsuv]+|-[WX].+"), flag_of_two_words("-[WX]");
  if (!std::regex_match(std::filesystem::path(command[0]).filename().string(), python)) return {};
  std::size_t at = 1;
  while (at < command.size() && (std::regex_match(command[at], flags) || std::regex_match(command[at], flag_of_two_words))) {
    at += std::regex_match(command[at], flag_of_two_words) ? 2 : 1;
  }
  if (at >= command.size()) return {};
  const bool module = command[at] == "-m" && at + 1 < command.size(), script = !command[at].starts_with('-') && command[at].ends_with(".py");
  if (!module && !script) return {};
  std::vector<std::string> words(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(at));
  words.insert(words.end(), {"-c", kStandBy});
  words.insert(words.end(), command.begin() + static_cast<std::ptrdiff_t>(at), command.end());
  return words;
}

Spares::Spares(const Launch& what, const std::string& program, const MeetingPoint& at)
    : program_(program), words_(standing_by(what.command).value()), environment_(environment_of(what, 0, at, {})) {
  std::erase_if(environment_, [](const auto& variable) { return variable.first == "SHOAL_RANK"; });
  for (unsigned host = 0; host < (what.lab ? what.members : 1); ++host) {
    for (unsigned i = 0; i < what.spares; ++i) spares_.emplace_back().host = what.host_of(host);
  }
}

std::string Spares::look() {
  for (Spare& spare : spares_) {
    notice(spare);
    if (spare.process.in || ended_ >= kMostEnds || steady_now() < spare.not_before) continue;
    if (std::ranges::any_of(spares_, [](const Spare& other) { return other.process.in && !other.ready; })) continue;  // imports take turns
    try {
      spare.process = start_standing_by(program_, words_, environment_, spare.host);
    } catch (const Error& error) {
      end(spare, error.what());
    }
  }
  if (ended_ < kMostEnds || std::exchange(said_, true)) return "";
  return fmt::format("shoal: {} spares ended before they were needed{}: no more are kept, and who comes in a lost member's place starts cold", ended_,
                     last_words_.empty() ? "" : " (" + last_words_ + ")");
}

void Spares::notice(Spare& spare) {
  if (!spare.process.in) return;
  char byte;
  const ssize_t got = ::recv(spare.process.in.get(), &byte, 1, MSG_DONTWAIT);
  if (got == 1) spare.ready = true;
  if (got == 1 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  end(spare, last_words_in(spare.process.child.err.get()));
}

void Spares::end(Spare& spare, const std::string& last_words) {
  ++ended_;
  last_words_ = last_words;
  spare.process = {};
  spare.ready = false;
  spare.not_before = steady_now() + kPause;
}

std::optional<Child> Spares::take(const HostSpace& host, const Environment& of_member) {
  std::string told;
  for (const auto& [name, value] : of_member) told += name + '=' + value + '\0';
  told += '\0';
  for (Spare& spare : spares_) {
    if (spare.host.network != host.network) continue;
    notice(spare);
    if (!std::exchange(spare.ready, false)) continue;
    if (has_ended(spare.process.child.pid)) {  // and what it started holds the socket
      end(spare, last_words_in(spare.process.child.err.get()));
      continue;
    }
    Talking taken = std::exchange(spare.process, {});  // its socket closes here: all has been said
    spare.not_before = steady_now() + kPause;
    if (::send(taken.in.get(), told.data(), told.size(), MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(told.size())) continue;
    ended_ = 0;
    return std::move(taken.child);
  }
  return {};
}

}  // namespace shoal::app
