#include "app/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "shoal/core/error.h"
#include "shoal/core/time.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

struct Pipe {
  net::Descriptor read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Code::io, std::string("cannot make a pipe: ") + std::strerror(errno));
  return {net::Descriptor(ends[0]), net::Descriptor(ends[1])};
}

// C strings for exec, made before fork: a child of a process with threads must not allocate.
class ExecVectors {
 public:
  ExecVectors(const std::vector<std::string>& words, const Environment& environment) : words_(words) {
    std::map<std::string, std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const auto equals = text.find('=');
      if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : environment) variables[name] = value;
    for (const auto& [name, value] : variables) variables_.push_back(name + "=" + value);
    for (auto& word : words_) argv_.push_back(word.data());
    for (auto& variable : variables_) envp_.push_back(variable.data());
    argv_.push_back(nullptr);
    envp_.push_back(nullptr);
  }
  ExecVectors(const ExecVectors&) = delete;
  char* const* argv() { return argv_.data(); }
  char* const* envp() { return envp_.data(); }

 private:
  std::vector<std::string> words_, variables_;
  std::vector<char*> argv_, envp_;
};

// What a child that could not exec tells its parent.
struct StartFailure {
  char step[32];
  int error;
};

void restore_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

// After fork, in the child: only async-signal-safe calls. Returns the step that failed.
const char* start_in_child(const char* program, ExecVectors& vectors, const HostSpace& host, pid_t launcher,
                           int in, int out, int err) {
  if (::setpgid(0, 0) != 0) return "setpgid";
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "prctl";
  if (::getppid() != launcher) ::_exit(128 + SIGKILL);  // it died before prctl
  if (const char* step = enter(host)) return step;
  if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) return "dup2";
  restore_signals();
  ::execve(program, vectors.argv(), vectors.envp());
  return "exec";
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

Error not_a_program(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {Code::invalid_argument, "is a folder, no command", path.string()};
  if (path.has_parent_path() && fs::exists(path, error)) {
    return {Code::invalid_argument, "is not executable", path.string(), "chmod +x " + path.string()};
  }
  return {Code::invalid_argument, "command not found: " + path.string()};
}

// The status with which a child ended; at the deadline it is killed, and `said` tells so.
int wait_until(pid_t pid, Instant deadline, std::string& said) {
  constexpr int kLookEach = 1;  // ms; a child that has closed its outputs is about to end
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (steady_now() < deadline) {
      ::poll(nullptr, 0, kLookEach);
      continue;
    }
    ::kill(pid, SIGKILL);
    said += "\nended: it took too long\n";
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    break;
  }
  return status;
}

net::Descriptor nothing_to_read(const std::string& where) {
  net::Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!in) throw Error(Code::io, std::string("cannot open /dev/null: ") + std::strerror(errno), where);
  return in;
}

net::Descriptor reading_end(Pipe& pipe) {
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return std::move(pipe.read);
}

struct Streams {
  int in, out, err;
};

pid_t start(const std::string& program, const std::vector<std::string>& words, const Environment& environment, const HostSpace& host,
            Streams streams) {
  Pipe failure = make_pipe();
  ExecVectors vectors(words, environment);
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0)
    throw Error(Code::io, std::string("cannot start a process: ") + std::strerror(errno), words[0]);
  if (pid == 0) {
    const char* step = start_in_child(program.c_str(), vectors, host, launcher, streams.in, streams.out, streams.err);
    StartFailure report{{}, errno};
    std::strncpy(report.step, step, sizeof report.step - 1);
    (void)!::write(failure.write.get(), &report, sizeof report);
    ::_exit(127);
  }
  ::setpgid(pid, pid);  // also here, so that the group exists whoever comes first
  failure.write.reset();
  StartFailure report{};
  ssize_t got = 0;
  do {
    got = ::read(failure.read.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof report) {
    ::waitpid(pid, nullptr, 0);
    throw Error(Code::invalid_argument,
                std::string("cannot ") + report.step + ": " + std::strerror(report.error), words[0]);
  }
  return pid;
}

}  // namespace

std::string find_program(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    if (is_program(word)) return fs::absolute(word);
    throw not_a_program(word);
  }
  const char* path = std::getenv("PATH");
  std::optional<fs::path> found_file;  // by that name, but no program
  std::error_code error;
  std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const auto end = std::min(folders.find(':', begin), folders.size());
    const fs::path candidate = fs::path(folders.substr(begin, end - begin)) / word;
    if (is_program(candidate)) return fs::absolute(candidate);
    if (!found_file && fs::exists(candidate, error)) found_file = candidate;
    begin = end + 1;
  }
  throw not_a_program(found_file.value_or(word));
}

Outputs make_outputs() {
  Pipe out = make_pipe(), err = make_pipe();
  return {{-1, reading_end(out), reading_end(err)}, std::move(out.write), std::move(err.write)};
}

void read_available(net::Descriptor& from, std::string& text) {
  constexpr std::size_t most = 1 << 20;
  char buffer[4096];
  for (int pieces = 16; from && pieces > 0; --pieces) {  // as much as a pipe holds: who never stops writing does not keep us here
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) from.reset();
    if (got <= 0) return;
    text.append(buffer, std::min(static_cast<std::size_t>(got), most - std::min(text.size(), most)));
  }
}

Child start_member(const std::string& program, const std::vector<std::string>& words,
                   const Environment& environment, const HostSpace& host) {
  Outputs outputs = make_outputs();
  outputs.child.pid = start(program, words, environment, host, {nothing_to_read(words[0]).get(), outputs.out.get(), outputs.err.get()});
  return std::move(outputs.child);
}

pid_t start_attached(const std::string& program, const std::vector<std::string>& words, const Environment& environment) {
  return start(program, words, environment, {}, {nothing_to_read(words[0]).get(), 1, 2});
}

Talking start_talking(const std::string& program, const std::vector<std::string>& words) {
  Pipe in = make_pipe();
  Outputs outputs = make_outputs();
  outputs.child.pid = start(program, words, {}, {}, {in.read.get(), outputs.out.get(), outputs.err.get()});
  ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  return {std::move(outputs.child), std::move(in.write)};
}

std::pair<net::Descriptor, net::Descriptor> make_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Error(Code::io, std::string("cannot make a socket: ") + std::strerror(errno));
  return {net::Descriptor(ends[0]), net::Descriptor(ends[1])};
}

Talking start_asked(const std::string& program, const std::vector<std::string>& words, const Environment& environment) {
  auto [ours, theirs] = make_sockets();
  Outputs outputs = make_outputs();
  outputs.child.pid = start(program, words, environment, {}, {theirs.get(), outputs.out.get(), outputs.err.get()});
  return {std::move(outputs.child), std::move(ours)};
}

void become(const std::vector<std::string>& words, const Environment& environment, const HostSpace& host) {
  const std::string program = find_program(words[0]);
  ExecVectors vectors(words, environment);
  const char* step = enter(host);
  if (!step) {
    restore_signals();
    ::execve(program.c_str(), vectors.argv(), vectors.envp());
    step = "exec";
  }
  const int why = errno;
  const std::string where = host.name.empty() ? words[0] : words[0] + " on " + host.name;
  throw Error(why == EPERM ? Code::unsupported : Code::io, std::string("cannot ") + step + ": " + std::strerror(why), where);
}

std::string last_line(std::string err) {
  while (!err.empty() && (err.back() == '\n' || err.back() == ' ')) err.pop_back();
  return err.substr(err.find_last_of('\n') + 1);
}

ToolResult run_tool(const std::vector<std::string>& words, Nanoseconds limit) {
  Outputs outputs = make_outputs();
  ExecVectors vectors(words, {});
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, outputs.out.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, outputs.err.get(), 2);
  pid_t pid = -1;
  const int failed =
      ::posix_spawnp(&pid, words[0].c_str(), &actions, nullptr, vectors.argv(), vectors.envp());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    throw Error(Code::unsupported, words[0] + " cannot be started: " + std::strerror(failed), {},
                words[0] == "ip" || words[0] == "tc" ? "install the package iproute2" : "");
  }
  outputs.out.reset();
  outputs.err.reset();

  ToolResult result;
  auto& [_, out, err] = outputs.child;
  const Instant deadline = steady_now() + limit;
  while (out || err) {
    pollfd fds[2] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_now()).count();
    if (left <= 0) break;
    if (::poll(fds, 2, static_cast<int>(left)) <= 0) continue;
    read_available(out, result.out);
    read_available(err, result.err);
  }
  const int status = wait_until(pid, deadline, result.err);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace shoal::app
