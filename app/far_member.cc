// The far side of `shoal run --hosts` (far.h): keeps one member.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "app/far.h"
#include "app/processes.h"
#include "shoal/core/error.h"
#include "shoal/core/host.h"
#include "shoal/core/time.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_assignment = 16 << 20;

// What comes by standard input; each read has a limit.
class Input {
 public:
  // More bytes, or false: the connection has ended, or has been silent for too long.
  bool more(Instant until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_now()).count();
    pollfd ready{0, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) return false;
    char buffer[64 * 1024];
    const ssize_t got = ::read(0, buffer, sizeof buffer);
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && errno == EINTR);
  }
  std::optional<std::string> line() {
    const auto end = text.find('\n');
    if (end == std::string::npos) return {};
    std::string first = text.substr(0, end);
    text.erase(0, end + 1);
    return first;
  }
  std::string text;
};

Assignment read_assignment(Input& input) {
  const Instant until = steady_now() + far_patience;
  const auto incomplete = [] { return Error(Code::io, "the launcher did not say what to do", "shoal far-member", "it is started by shoal run --hosts"); };
  std::optional<std::string> size;
  while (!(size = input.line())) {
    if (!input.more(until)) throw incomplete();
  }
  const std::size_t bytes = std::strtoull(size->c_str(), nullptr, 10);
  if (bytes == 0 || bytes > longest_assignment) throw incomplete();
  while (input.text.size() < bytes) {
    if (!input.more(until)) throw incomplete();
  }
  std::vector<std::string> fields;
  for (std::size_t at = 0; at < bytes; at += fields.back().size() + 1) fields.emplace_back(input.text.c_str() + at);
  input.text.erase(0, bytes);
  constexpr std::size_t fixed = 3;
  const std::size_t variables = fields.size() > fixed ? std::strtoull(fields[2].c_str(), nullptr, 10) : 0;
  if (fields.size() <= fixed + variables) throw incomplete();
  Assignment assignment;
  assignment.folder = fields[0];
  assignment.slots = std::max(1u, static_cast<unsigned>(std::strtoul(fields[1].c_str(), nullptr, 10)));
  for (std::size_t i = fixed; i < fixed + variables; ++i) {
    const auto equals = fields[i].find('=');
    assignment.environment.emplace_back(fields[i].substr(0, equals), fields[i].substr(equals + 1));
  }
  assignment.command.assign(fields.begin() + static_cast<std::ptrdiff_t>(fixed + variables), fields.end());
  return assignment;
}

// The launcher's address as this host sees it goes first: that way packets have just come. "10.0.0.1 50022 10.0.0.2 22"
// Not where an interface was chosen: the launcher listens on that one alone, and nothing is to pass by another.
void prefer_the_way_we_came(Environment& environment) {
  const char* const connection = std::getenv("SSH_CONNECTION");
  const std::string launcher = connection ? std::string(connection).substr(0, std::strcspn(connection, " ")) : "";
  const auto chosen = [](const auto& variable) { return variable.first == "SHOAL_INTERFACE" && !variable.second.empty(); };
  if (launcher.empty() || launcher.find('%') != std::string::npos) return;
  if (std::any_of(environment.begin(), environment.end(), chosen)) return;
  for (auto& [name, value] : environment) {
    if (name != "SHOAL_COORD") continue;
    const std::string port = value.substr(value.rfind(':'));
    value = (launcher.find(':') == std::string::npos ? launcher : "[" + launcher + "]") + port + "," + value;
  }
}

pid_t start_member_of(Assignment& assignment) {
  if (::chdir(assignment.folder.c_str()) != 0) {
    throw Error(Code::invalid_argument, "cannot go to " + assignment.folder + ": " + std::strerror(errno), "host " + host_name(),
                "members run in the folder in which shoal run was started; it must be there on every host");
  }
  prefer_the_way_we_came(assignment.environment);
  bool threads_said = false;
  for (const auto& [name, value] : assignment.environment) {
    ::setenv(name.c_str(), value.c_str(), 1);
    threads_said = threads_said || name == "OMP_NUM_THREADS";
  }
  if (!threads_said) {
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency() / assignment.slots);
    ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  }
  try {
    return start_attached(find_program(assignment.command[0]), assignment.command, {});
  } catch (const Error& error) {
    throw Error(error.code(), error.fact(), "host " + host_name());
  }
}

class Keeper {
 public:
  Keeper() {
    sigset_t set;
    ::sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_ = net::Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    adopt_orphans();
  }

  int run() {
    if (::write(1, keeper_is_there.data(), keeper_is_there.size()) < 0) return ssh_failed;
    Assignment assignment = read_assignment(input_);
    member_ = start_member_of(assignment);
    while (!status_) step();
    end_all(SIGTERM);
    return *status_;
  }

 private:
  // Until something happens.
  void step() {
    for (std::optional<std::string> line; (line = input_.line());) {
      const int signal = std::atoi(line->c_str());
      if (signal == SIGUSR1) tell_listeners(signal);
      if (signal == SIGTERM || signal == SIGKILL) ending_.tell_group(member_, signal);
    }
    pollfd fds[] = {{0, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(heard_ + far_patience - steady_now()).count();
    ::poll(fds, 2, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (fds[0].revents) {
      if (!input_.more(steady_now())) return give_up();
      heard_ = steady_now();
    } else if (steady_now() >= heard_ + far_patience) {
      return give_up();
    }
    if (fds[1].revents) read_signals();
  }

  void read_signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) return give_up();
    }
    collect();
  }

  void collect() {
    siginfo_t info{};
    if (status_ || ::waitid(P_PID, static_cast<id_t>(member_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    status_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  }

  // The launcher is gone: so is the member, soon.
  void give_up() {
    end_all(SIGTERM);
    status_ = ssh_failed;
  }

  // The member, its group and whatever fled from it; told again by KILL after a while.
  void end_all(int signal) {
    const Instant start = steady_now();
    while (ending_.tell_all(signal) && steady_now() - start < 2 * kGrace) {
      if (steady_now() - start > kGrace) signal = SIGKILL;
      pollfd something{signals_.get(), POLLIN, 0};
      signalfd_siginfo info;
      if (::poll(&something, 1, look_again) > 0) (void)!::read(signals_.get(), &info, sizeof info);
    }
    collect();
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  net::Descriptor signals_;
  Input input_;
  Ending ending_;
  Instant heard_ = steady_now();
  pid_t member_ = -1;
  std::optional<int> status_;
};

}  // namespace

int keep_far_member() { return Keeper().run(); }

}  // namespace shoal::app
