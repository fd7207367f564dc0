#include "app/fork_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

constexpr Nanoseconds kPause = 2s;  // its imports take some seconds of a core, which members want first
constexpr timeval kAnswers{.tv_sec = 5, .tv_usec = 0};  // within; it has nothing else to do

// Imports see what they would see in a cold process: an empty input, and the script's folder in front, or for a module this one.
constexpr const char* kServe = R"(import os, sys
asked, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)
if not sys.flags.safe_path and sys.argv[1] != "-c":
    sys.path[0] = os.getcwd() if sys.argv[1] == "-m" else os.path.dirname(os.path.realpath(sys.argv[1]))
from shoal import fork_server
fork_server.serve(asked)
)";

// What the process is to be, in the form that fork_server.py reads, after its length.
std::string request_of(const HostSpace& host, const Environment& environment) {
  std::string text = std::to_string(::getpid()) + '\0' + host.network + '\0' + host.name + '\0';
  for (const auto& [name, value] : environment) text += name + '=' + value + '\0';
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string request(sizeof length, '\0');
  std::memcpy(request.data(), &length, sizeof length);
  return request + text;
}

// All of it, with the descriptors; false where nobody takes it.
bool send_all(int socket, std::string_view text, std::array<int, 3> descriptors) {
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
    : program_(program), words_(what.fork_server), environment_(environment_of(what, 0, at, {})) {
  std::erase_if(environment_, [](const auto& variable) { return variable.first == "SHOAL_RANK"; });
  begin();
}

void ForkServer::begin() {
  process_ = start_asked(program_, words_, environment_);
  ::setsockopt(process_.in.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswers, sizeof kAnswers);
  out_.clear();
  err_.clear();
}

bool ForkServer::importing() {
  notice();
  return process_.in && !ready_;
}

std::vector<int> ForkServer::descriptors() const {
  std::vector<int> all;
  for (const auto* one : {&process_.in, &process_.child.out, &process_.child.err}) {
    if (*one) all.push_back(one->get());
  }
  return all;
}

std::pair<std::string, std::string> ForkServer::said() { return {std::exchange(out_, {}), std::exchange(err_, {})}; }

// Its end shows in the process and not only in the socket, which what its imports have started may hold.
void ForkServer::notice() {
  if (!process_.in) return;
  read_available(process_.child.out, out_);
  read_available(process_.child.err, err_);
  char byte;
  const ssize_t got = ::recv(process_.in.get(), &byte, 1, MSG_DONTWAIT);  // once it is ready it says no more
  if (got == 1) ready_ = true;
  siginfo_t ended{};
  const bool lives = ::waitid(P_PID, static_cast<id_t>(process_.child.pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
  if (!lives || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) end();
}

void ForkServer::stop() {
  if (process_.child.pid > 0) {
    ::kill(-process_.child.pid, SIGKILL);  // its own group, of which no member is: not reaped before, so still its number
    while (::waitpid(process_.child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = {};
  ready_ = false;
}

void ForkServer::end() {
  ++ended_;
  read_available(process_.child.err, err_);
  last_words_ = last_line(std::exchange(err_, {}));
  out_.clear();
  stop();
  not_before_ = steady_now() + kPause;
}

std::optional<Child> ForkServer::start(const HostSpace& host, const Environment& of_member) {
  notice();
  if (!ready_) return {};
  Outputs outputs = make_outputs();
  auto [word, of_process] = make_sockets();
  ::setsockopt(word.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswers, sizeof kAnswers);
  const bool asked = send_all(process_.in.get(), request_of(host, of_member), {outputs.out.get(), outputs.err.get(), of_process.get()});
  of_process.reset();
  const std::string answer = asked ? read_line(word.get()) : "";
  const auto read = std::from_chars(answer.data(), answer.data() + answer.size(), outputs.child.pid);
  if (!answer.empty() && read.ec != std::errc{}) throw Error(Code::invalid_argument, "cannot " + answer, program_);
  if (answer.empty() || ::send(word.get(), "", 1, MSG_NOSIGNAL) != 1) {
    end();
    return {};
  }
  ended_ = 0;
  return std::move(outputs.child);
}

std::string ForkServer::look() {
  notice();
  if (!process_.in && ended_ < kMostEnds && steady_now() >= not_before_) {
    try {
      begin();
    } catch (const Error& error) {
      end();
      last_words_ = error.what();
    }
  }
  if (process_.in || ended_ < kMostEnds || std::exchange(told_, true)) return "";
  return fmt::format("shoal: the process of which members are forked ended {} times{}: who comes in a lost member's place starts cold", ended_,
                     last_words_.empty() ? "" : " (" + last_words_ + ")");
}

}  // namespace shoal::app
