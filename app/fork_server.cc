#include "app/fork_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <regex>
#include <utility>

#include <fmt/format.h>

#include "app/assignment.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kPause = 2s;        // its imports take some seconds of a core, which members want first
constexpr timeval kAnswers{.tv_sec = 10, .tv_usec = 0};  // with one that is ready: it has nothing to do but this

// Imports see what they would see in a cold process: the script's folder in front, or for a module this one.
constexpr const char* kServe = R"(import os, sys
if not sys.flags.safe_path and sys.argv[1] != "-c":
    sys.path[0] = os.getcwd() if sys.argv[1] == "-m" else os.path.dirname(os.path.realpath(sys.argv[1]))
from shoal import fork_server
fork_server.serve()
)";

// What the process is to be, in the form that fork_server.py reads, after its length.
std::string request_of(const HostSpace& host, const Environment& environment) {
  std::string text = host.network + '\0' + host.name + '\0';
  for (const auto& [name, value] : environment) text += name + '=' + value + '\0';
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string request(sizeof length, '\0');
  std::memcpy(request.data(), &length, sizeof length);
  return request + text;
}

// All of it, with the descriptors; false where nobody takes it.
bool send_all(int socket, std::string_view text, std::array<int, 2> descriptors) {
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof descriptors)]{};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  while (part.iov_len > 0) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    part = {static_cast<char*>(part.iov_base) + sent, part.iov_len - static_cast<std::size_t>(sent)};
    message.msg_control = nullptr;  // they have gone with the first bytes
    message.msg_controllen = 0;
  }
  return true;
}

// A line, without its end; empty where none comes.
std::string read_line(int socket) {
  std::string line;
  char byte;
  for (;;) {
    const ssize_t got = ::recv(socket, &byte, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return {};
    if (byte == '\n') return line;
    line += byte;
  }
}

}  // namespace

std::optional<std::vector<std::string>> forking(const std::vector<std::string>& command) {
  static const std::regex python("python(3(\\.[0-9]+)?)?"), flags("-[bBdEIOPqsuv]+|-[WX].+"), flag_of_two_words("-[WX]");
  if (!std::regex_match(std::filesystem::path(command[0]).filename().string(), python)) return {};
  std::size_t at = 1;
  while (at < command.size() && (std::regex_match(command[at], flags) || std::regex_match(command[at], flag_of_two_words))) {
    at += std::regex_match(command[at], flag_of_two_words) ? 2 : 1;
  }
  if (at >= command.size()) return {};
  const bool named = (command[at] == "-m" || command[at] == "-c") && at + 1 < command.size();
  if (!named && (command[at].starts_with('-') || !command[at].ends_with(".py"))) return {};
  std::vector<std::string> words(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(at));
  words.insert(words.end(), {"-c", kServe});
  words.insert(words.end(), command.begin() + static_cast<std::ptrdiff_t>(at), command.end());
  return words;
}

ForkServer::ForkServer(const Launch& what, const std::string& program, const MeetingPoint& at)
    : program_(program), words_(forking(what.command).value()), environment_(environment_of(what, 0, at, {})) {
  std::erase_if(environment_, [](const auto& variable) { return variable.first == "SHOAL_RANK"; });
  begin();
}

void ForkServer::begin() {
  process_ = start_asked(program_, words_, environment_);
  for (const int which : {SO_SNDTIMEO, SO_RCVTIMEO}) ::setsockopt(process_.socket.get(), SOL_SOCKET, which, &kAnswers, sizeof kAnswers);
}

bool ForkServer::importing() {
  notice();
  return process_.socket && !ready_;
}

std::string ForkServer::said() {
  std::string text(64 * 1024, '\0');
  const ssize_t got = ::pread(process_.said.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got > 0) (void)!::ftruncate(process_.said.get(), 0);
  return text;
}

void ForkServer::notice() {
  if (!process_.socket) return;
  char byte;
  const ssize_t got = ::recv(process_.socket.get(), &byte, 1, MSG_DONTWAIT);  // once it is ready it says only what it is asked for
  if (got == 1) ready_ = true;
  if (got == 1 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  end();
}

void ForkServer::end() {
  ++ended_;
  last_words_ = last_line(said());
  process_ = {};
  ready_ = false;
  not_before_ = steady_now() + kPause;
}

std::optional<Child> ForkServer::start(const HostSpace& host, const Environment& of_member) {
  notice();
  if (!ready_) return {};
  Outputs outputs = make_outputs();
  std::string answer;
  if (send_all(process_.socket.get(), request_of(host, of_member), {outputs.out.get(), outputs.err.get()})) answer = read_line(process_.socket.get());
  const auto read = std::from_chars(answer.data(), answer.data() + answer.size(), outputs.child.pid);
  if (!answer.empty() && read.ec == std::errc{}) {
    ended_ = 0;
    return std::move(outputs.child);
  }
  if (!answer.empty()) throw Error(Code::invalid_argument, "cannot " + answer, program_);
  end();
  return {};
}

std::string ForkServer::look() {
  notice();
  if (!process_.socket && ended_ < kMostEnds && steady_now() >= not_before_) {
    try {
      begin();
    } catch (const Error& error) {
      end();
      last_words_ = error.what();
    }
  }
  if (process_.socket || ended_ < kMostEnds || std::exchange(told_, true)) return "";
  return fmt::format("shoal: the process of which members are forked ended {} times{}: who comes in a lost member's place starts cold", ended_,
                     last_words_.empty() ? "" : " (" + last_words_ + ")");
}

}  // namespace shoal::app
