#include "app/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/meeting_point.h"
#include "app/processes.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"
#include "shoal/observe/finish.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds settle_time = 5s;  // after a failure, for the others to end by themselves
constexpr Nanoseconds grace = 5s;        // between TERM and KILL, and after KILL before giving up
constexpr int lost_a_peer = 3;           // exit status of a member that ended because another did

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

Console::Screen screen(int fd) {
  Console::Screen made;
  made.terminal = ::isatty(fd);
  made.colour = made.terminal && !std::getenv("NO_COLOR");
  winsize size{};
  if (made.terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) made.columns = size.ws_col;
  made.write = [fd](std::string_view text) { write_patiently(fd, text); };
  return made;
}

unsigned usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? static_cast<unsigned>(CPU_COUNT(&cores)) : 1;
}

struct Member {
  pid_t pid = -1;
  Descriptor streams[2];  // its out and err, until their end
  Descriptor log;
  bool ended = false;
  int status = 0;  // 0..255, or 128 + signal
  int signal = 0;
  bool told_to_end = false;
};

class Launcher {
 public:
  explicit Launcher(const Launch& what)
      : what_(what), console_(what.members, {screen(1), screen(2)}, what.show), members_(what.members) {}
  ~Launcher() { end_everything(SIGKILL); }

  int run() {
    watch_signals();
    adopt_orphans();
    start_all();
    while (living() > 0 && !given_up_) {
      wait();
      advance();
    }
    end_everything(SIGTERM);
    finish_output();
    report_recorded();
    return report();
  }

 private:
  enum class Phase { running, settling, terminating, killing };

  void watch_signals();
  void start_all();
  Environment environment_of(unsigned rank) const;
  std::size_t living() const;
  void wait();
  void read_signals();
  void read_output(unsigned rank, Console::Stream stream);
  void collect();
  void advance();
  void tell_all(int signal);
  void end_everything(int signal);
  void finish_output();
  const Member* culprit() const;
  void report_recorded();
  int report();
  std::string describe(const Member& member) const;
  unsigned rank_of(const Member& member) const { return static_cast<unsigned>(&member - members_.data()); }

  const Launch& what_;
  Console console_;
  std::vector<Member> members_;
  std::optional<MeetingPoint> meeting_point_;
  Descriptor signals_;
  Phase phase_ = Phase::running;
  Instant deadline_ = Instant::max();  // of the phase
  int told_by_ = 0;                    // the signal that told this process to end
  bool given_up_ = false;
  std::vector<unsigned> failures_;  // ranks, as they were noticed
};

void Launcher::watch_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw Error(Code::io, std::string("cannot watch signals: ") + std::strerror(errno));
}

void Launcher::start_all() {
  const std::string program = find_program(what_.command[0]);
  for (unsigned rank = 0; rank < what_.members; ++rank) {
    const auto file = what_.folder / "logs" / fmt::format("rank-{}.log", rank);
    members_[rank].log = Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!members_[rank].log) {
      throw Error(Code::invalid_argument, std::string("cannot write: ") + std::strerror(errno),
                  file.string());
    }
  }
  meeting_point_.emplace(what_.lab ? &what_.lab->hosts[0] : nullptr);
  for (unsigned rank = 0; rank < what_.members; ++rank) {
    const HostSpace host = what_.lab ? what_.lab->hosts[rank].space() : HostSpace{};
    Child child = start_member(program, what_.command, environment_of(rank), host);
    members_[rank].pid = child.pid;
    members_[rank].streams[Console::out] = std::move(child.out);
    members_[rank].streams[Console::err] = std::move(child.err);
  }
}

Environment Launcher::environment_of(unsigned rank) const {
  Environment environment = what_.environment;
  environment.insert(environment.end(), {{"SHOAL_RANK", std::to_string(rank)},
                                         {"SHOAL_SIZE", std::to_string(what_.members)},
                                         {"SHOAL_COORD", meeting_point_->address()},
                                         {"SHOAL_SECRET", meeting_point_->secret()},
                                         {"SHOAL_JOB", what_.folder.filename()},
                                         {"SHOAL_RUN_DIR", what_.folder}});
  if (!std::getenv("OMP_NUM_THREADS")) {
    environment.emplace_back("OMP_NUM_THREADS", std::to_string(std::max(1u, usable_cores() / what_.members)));
  }
  // Members write into pipes: say that a person is watching behind them, and let lines come as they are
  // printed.
  if (::isatty(2)) environment.emplace_back("SHOAL_TERMINAL", std::to_string(screen(2).columns));
  if (!std::getenv("PYTHONUNBUFFERED")) environment.emplace_back("PYTHONUNBUFFERED", "1");
  return environment;
}

std::size_t Launcher::living() const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.pid > 0 && !m.ended; }));
}

// Until something happens or the phase's deadline.
void Launcher::wait() {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}};
  std::vector<std::pair<unsigned, Console::Stream>> owners{{}};
  for (unsigned rank = 0; rank < members_.size(); ++rank) {
    for (auto stream : {Console::out, Console::err}) {
      if (!members_[rank].streams[stream]) continue;
      fds.push_back({members_[rank].streams[stream].get(), POLLIN, 0});
      owners.emplace_back(rank, stream);
    }
  }
  int patience = -1;  // members end, or somebody tells us to end them: nothing else can be waited for
  if (deadline_ != Instant::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_now()).count();
    patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  }
  if (::poll(fds.data(), fds.size(), patience) <= 0) return;
  for (std::size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents) read_output(owners[i].first, owners[i].second);
  }
  if (fds[0].revents) read_signals();
}

void Launcher::read_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (told_by_ != 0 && phase_ == Phase::terminating) deadline_ = steady_now();  // told twice: no more grace
    if (told_by_ == 0) {
      told_by_ = signal;
      phase_ = Phase::settling;
      deadline_ = steady_now();
    }
  }
  collect();
}

void Launcher::read_output(unsigned rank, Console::Stream stream) {
  char buffer[64 * 1024];
  const ssize_t got = ::read(members_[rank].streams[stream].get(), buffer, sizeof buffer);
  if (got > 0) {
    const std::string_view bytes(buffer, static_cast<std::size_t>(got));
    if (members_[rank].log && ::write(members_[rank].log.get(), bytes.data(), bytes.size()) != got) {
      members_[rank].log.reset();
      console_.say(fmt::format("shoal: the log of rank {} ends here: {}", rank, std::strerror(errno)));
    }
    console_.take(rank, stream, bytes);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    members_[rank].streams[stream].reset();
    console_.finish(rank, stream);
  }
}

// Notices members that ended. They stay zombies until everything has ended, so that their process groups keep
// their numbers; orphans that were adopted are reaped at once.
void Launcher::collect() {
  std::vector<unsigned> failed;
  for (auto& member : members_) {
    siginfo_t info{};
    if (member.pid <= 0 || member.ended) continue;
    if (::waitid(P_PID, static_cast<id_t>(member.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      continue;
    }
    member.ended = true;
    member.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    member.status = member.signal ? 128 + member.signal : info.si_status;
    signal_group(member.pid, member.signal ? SIGKILL : SIGTERM);  // what it left: its peers must see it gone
    if (member.status != 0 && !member.told_to_end) failed.push_back(rank_of(member));
  }
  failures_.insert(failures_.end(), failed.begin(), failed.end());
  for (const Process& process : descendants()) {
    const bool member =
        std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return m.pid == process.pid; });
    if (!member && process.state == 'Z' && process.parent == ::getpid())
      ::waitpid(process.pid, nullptr, WNOHANG);
  }
}

// running -> (a member failed) settling -> terminating -> killing
void Launcher::advance() {
  const Instant now = steady_now();
  if (phase_ == Phase::running && !failures_.empty()) {
    phase_ = Phase::settling;
    deadline_ = now + settle_time;
  }
  if (now < deadline_) return;
  switch (phase_) {
    case Phase::running:
      return;
    case Phase::settling:
      phase_ = Phase::terminating;
      tell_all(SIGTERM);
      break;
    case Phase::terminating:
      phase_ = Phase::killing;
      tell_all(SIGKILL);
      break;
    case Phase::killing:
      given_up_ = true;  // stuck in the kernel: nobody can end it
      return;
  }
  deadline_ = now + grace;
}

void Launcher::tell_all(int signal) {
  for (auto& member : members_) {
    if (member.pid <= 0 || member.ended) continue;
    member.told_to_end = true;
    signal_group(member.pid, signal);
  }
}

// Ends all that is left below this process and reaps it: members, their groups, and what left those groups.
// Descendants that are nobody's children end unseen, so this looks again every 20 ms.
void Launcher::end_everything(int signal) {
  const Instant start = steady_now();
  std::set<pid_t> told;
  while (steady_now() - start < 2 * grace) {
    if (steady_now() - start > grace) signal = SIGKILL;
    bool living = false;
    for (const Process& process : descendants()) {
      if (process.state == 'Z') continue;
      living = true;
      if (signal != SIGKILL && !told.insert(process.pid).second) continue;  // TERM is said once
      ::kill(process.pid, signal);
      ::kill(process.pid, SIGCONT);
    }
    if (!living) break;
    pollfd something{signals_.get(), POLLIN, 0};
    if (::poll(&something, 1, 20) > 0) read_signals();
    if (told_by_ != 0) signal = SIGKILL;
  }
  collect();
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void Launcher::finish_output() {
  for (unsigned rank = 0; rank < members_.size(); ++rank) {
    for (auto stream : {Console::out, Console::err}) {
      Descriptor& fd = members_[rank].streams[stream];
      for (pollfd ready{fd.get(), POLLIN, 0}; fd && ::poll(&ready, 1, 0) > 0;) read_output(rank, stream);
      if (fd) console_.finish(rank, stream);
    }
  }
}

// The first member that failed. One that only lost a peer is a consequence, if another cause is known.
const Member* Launcher::culprit() const {
  for (unsigned rank : failures_) {
    if (members_[rank].status != lost_a_peer) return &members_[rank];
  }
  return failures_.empty() ? nullptr : &members_[failures_.front()];
}

std::string Launcher::describe(const Member& member) const {
  return member.signal ? fmt::format("killed by signal {} ({})", member.signal, ::sigabbrev_np(member.signal))
                       : fmt::format("exit status {}", member.status);
}

// What members recorded and did not report themselves: a script's run, or one that failed.
void Launcher::report_recorded() {
  try {
    const auto folder = observe::RunFolder::open(what_.folder);
    if (!folder.event_files().empty()) observe::finish_run(folder);
  } catch (const Error& error) {
    console_.say(fmt::format("shoal: no report: {}", error.what()));
  }
}

int Launcher::report() {
  const Member* first = culprit();
  if (first && told_by_ == 0) {
    std::map<std::string, std::vector<unsigned>> said;  // one line for all who ended with the same words
    for (unsigned rank : failures_) {
      const auto& line = console_.last_error(rank);
      if (&members_[rank] != first && !line.empty()) said[line].push_back(rank);
    }
    for (auto& [line, ranks] : said) {
      std::sort(ranks.begin(), ranks.end());
      console_.say(fmt::format("shoal: rank{} {} ended with: {}", ranks.size() > 1 ? "s" : "",
                               fmt::join(ranks, ", "), line));
    }
  }
  console_.say(fmt::format("shoal: run folder {}", what_.folder.string()));
  if (told_by_ != 0) {
    console_.say(fmt::format("shoal: ended by {}; every member has ended", ::sigabbrev_np(told_by_)));
    return 128 + told_by_;
  }
  if (!first) return 0;
  const unsigned rank = rank_of(*first);
  const auto& line = console_.last_error(rank);
  console_.say(fmt::format("shoal: rank {} failed first: {}{}", rank, describe(*first),
                           line.empty() ? "" : ": " + line));
  // A signal is what happened to that member; what happened to the run is what the others say.
  const bool lost = first->signal != 0 && std::any_of(failures_.begin(), failures_.end(), [&](unsigned other) {
    return members_[other].status == lost_a_peer;
  });
  return lost ? lost_a_peer : first->status;
}

}  // namespace

int launch(const Launch& what) { return Launcher(what).run(); }

}  // namespace shoal::app
