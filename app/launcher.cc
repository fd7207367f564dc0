#include "app/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "app/launching.h"
#include "shoal/core/error.h"

namespace shoal::app {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds refusal_time = 1s;  // after bad input: the others have found the same, or wait for whom refused it
constexpr int look_again_at_stopped = 500;  // milliseconds
constexpr Nanoseconds time_to_save = 30s;  // between TERM and KILL where TERM came from outside: members save first

}  // namespace

Ended Launcher::run() {
  watcher_.emplace("SHOAL_RUN_DIR=" + what_.folder.string());
  watch_signals();
  adopt_orphans();
  start_all();
  while ((living() > 0 || (!started_ && phase_ == Phase::running)) && !given_up_) {
    wait();
    advance();
  }
  end_everything(SIGTERM);
  for (unsigned rank = 0; rank < what_.members; ++rank) drain(rank);
  const Verdict verdict = judge(members_, failures_, {told_, what_.shrinks && !what_.replaces_all()});
  if (verdict.culprit && told_.by == 0 && what_.replaces_all() && was_lost(members_[*verdict.culprit]) && std::ranges::any_of(members_, succeeded)) {
    console_.say("shoal: nobody was started in a lost member's place, since others had ended: what they did is done, what it had still to do is not");
  }
  report_recorded(console_, what_.folder, verdict.culprit.has_value());
  say_account(console_, members_, failures_, verdict, told_, what_.folder);
  Ended ended{verdict.status, {}};
  for (const unsigned rank : failures_) {
    const Member& member = members_[rank];
    if (ended.status != 0 && told_.by == 0 && was_lost(member)) ended.lost.push_back(rank);
  }
  return ended;
}

void Launcher::watch_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = net::Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw Error(Code::io, std::string("cannot watch signals: ") + std::strerror(errno));
}

void Launcher::start_all() {
  program_ = far() ? "" : find_program(what_.command[0]);
  for (unsigned rank = 0; rank < what_.members; ++rank) open_log(rank);
  if (far()) {
    meeting_point_.emplace(what_.where, what_.folder.filename(), what_.members);
  } else {
    meeting_point_.emplace(what_.lab ? &what_.lab->hosts[0] : nullptr, what_.where, what_.folder.filename(), what_.members);
  }
  generations_.emplace(meeting_point_->coordinator(), what_.replacements.value_or(0));
  if (what_.replaces_all()) joining_.emplace(what_.folder);
  if (!what_.fork_server.empty()) {
    fork_server_.emplace(what_, program_, *meeting_point_);
  } else {
    start_members();
  }
}

// All of them: with nobody to fork them, or as soon as it is known whether there is.
void Launcher::start_members() {
  started_ = true;
  if (fork_server_ && fork_server_->pid() > 0) {
    const auto [out, err] = fork_server_->said();  // what their own imports would have said
    take(0, Console::out, out);
    take(0, Console::err, err);
  } else if (fork_server_) {
    console_.say(fmt::format("shoal: members start cold, since nothing can be forked here{} (--cold leaves out to try)", fork_server_->last_words().empty() ? "" : ": " + fork_server_->last_words()));
  }
  for (unsigned rank = 0; rank < what_.members && phase_ == Phase::running; ++rank) {
    start(rank, {});
    pollfd told{signals_.get(), POLLIN, 0};
    if (::poll(&told, 1, 0) > 0) read_signals();
  }
  if (!what_.replacements) fork_server_.reset();
}

void Launcher::open_log(unsigned rank) {
  const auto file = what_.folder / "logs" / fmt::format("rank-{}.log", rank);
  members_[rank].log = net::Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!members_[rank].log) throw Error(Code::invalid_argument, std::string("cannot write: ") + std::strerror(errno), file.string());
}

void Launcher::start(unsigned rank, const Comes& comes) {
  Child child;
  if (far()) {
    Talking talking = start_far(what_.far[rank], assignment_of(what_, rank, *meeting_point_, comes));
    child = std::move(talking.child);
    members_[rank].in = std::move(talking.in);
  } else {
    const Environment environment = environment_of(what_, rank, *meeting_point_, comes);
    auto forked = fork_server_ ? fork_server_->start(what_.host_of(rank), environment) : std::nullopt;
    child = forked ? std::move(*forked) : start_member(program_, what_.command, environment, what_.host_of(rank));
  }
  members_[rank].generation = comes.generation;
  members_[rank].pid = child.pid;
  members_[rank].streams[Console::out] = std::move(child.out);
  members_[rank].streams[Console::err] = std::move(child.err);
}

std::size_t Launcher::living() const {
  return static_cast<std::size_t>(std::ranges::count_if(members_, [](const Member& m) { return m.pid > 0 && !m.ended; }));
}

// A member that stands still does not hear that the others went on without it.
bool Launcher::only_stopped() {
  const Instant now = steady_now();
  if (living() == 0 || living() == members_.size() || now < next_look_) return false;
  next_look_ = now + std::chrono::milliseconds(look_again_at_stopped);  // it reads all of /proc
  const std::vector<pid_t> stopped = stopped_descendants();
  return std::ranges::all_of(members_, [&](const Member& member) {
    return member.pid <= 0 || member.ended || std::ranges::find(stopped, member.pid) != stopped.end();
  });
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
  if (!started_) {
    for (const int fd : fork_server_->descriptors()) fds.push_back({fd, POLLIN, 0});
  }
  int patience = far() ? beat() : -1;  // members end, or somebody tells us to end them: nothing else can be waited for
  if (what_.replacements || (what_.shrinks && living() < members_.size())) patience = patience < 0 ? look_again_at_stopped : std::min(patience, look_again_at_stopped);
  if (deadline_ != Instant::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_now()).count();
    patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, patience < 0 ? 60'000 : patience));
  }
  if (::poll(fds.data(), fds.size(), patience) <= 0) return;
  for (std::size_t i = 1; i < fds.size() && started_; ++i) {
    if (fds[i].revents) read_output(owners[i].first, owners[i].second);
  }
  if (fds[0].revents) read_signals();
}

// Tells keepers that this process lives; returns the milliseconds until they want to hear it again.
int Launcher::beat() {
  const Instant now = steady_now();
  if (now >= next_beat_) {
    next_beat_ = now + far_beat;
    for (const auto& member : members_) {
      if (member.in && !member.ended) tell_keeper(member, "\n");
    }
  }
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - now).count());
}

void Launcher::read_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (signal == SIGUSR1) {
      pass_on(signal);
      continue;
    }
    if (told_.by != 0 && phase_ == Phase::terminating) {  // no more grace
      told_.again = true;
      deadline_ = steady_now();
    }
    if (told_.by == 0) {
      told_.by = signal;
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
    take(rank, stream, {buffer, static_cast<std::size_t>(got)});
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    members_[rank].streams[stream].reset();
    console_.finish(rank, stream);
  }
}

void Launcher::take(unsigned rank, Console::Stream stream, std::string_view bytes) {
  Member& member = members_[rank];
  const std::string said = stream == Console::out ? without_greeting(member, bytes) : std::string(bytes);
  if (member.log && ::write(member.log.get(), said.data(), said.size()) != static_cast<ssize_t>(said.size())) {
    member.log.reset();
    console_.say(fmt::format("shoal: the log of rank {} ends here: {}", rank, std::strerror(errno)));
  }
  console_.take(rank, stream, said);
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
    if (member.in) {
      const unsigned rank = rank_of(member);
      for (pollfd ready{member.streams[Console::out].get(), POLLIN, 0}; !member.kept && member.streams[Console::out] && ::poll(&ready, 1, 0) > 0;) {
        read_output(rank, Console::out);
      }
      judge_far(member, what_.far[rank].name);
    }
    // What it left: its peers must see it gone. Those who were told to end are still at it.
    if (!member.told_to_end) ending_.tell_group(member.pid, member.signal ? SIGKILL : SIGTERM);
    if (member.status != 0 && (!member.told_to_end || told_.by != 0) && rank_of(member) < belonging()) failed.push_back(rank_of(member));
  }
  failures_.insert(failures_.end(), failed.begin(), failed.end());
  for (const Process& process : descendants()) {
    // The watcher's number, too, must stay its own until it is dismissed, and the fork server's.
    const bool kept = (watcher_ && process.pid == watcher_->pid()) || (fork_server_ && process.pid == fork_server_->pid()) ||
        std::ranges::find(members_, process.pid, &Member::pid) != members_.end() || std::ranges::find(replaced_, process.pid, &Member::pid) != replaced_.end();
    if (!kept && process.state == 'Z' && process.parent == ::getpid())
      ::waitpid(process.pid, nullptr, WNOHANG);
  }
}

// running -> (a member failed) settling -> terminating -> killing
void Launcher::advance() {
  const Instant now = steady_now();
  if (phase_ == Phase::running && !started_ && !fork_server_->importing()) start_members();
  if (const auto news = phase_ == Phase::running && started_ && fork_server_ && generations_->may(1) ? fork_server_->look() : ""; !news.empty()) console_.say(news);
  if (phase_ == Phase::running && started_ && joining_ && now >= next_look_at_joining_) take_more();
  if (phase_ == Phase::running && started_ && what_.replacements) replace_lost();
  if (phase_ == Phase::running && what_.shrinks && only_stopped()) {
    for (const Member& member : members_) {
      if (member.pid <= 0 || member.ended) continue;
      console_.say(fmt::format("shoal: rank {} stands still (stopped), and the others have ended without it: it is ended", rank_of(member)));
      if (what_.replaces_all()) failures_.push_back(rank_of(member));
    }
    settle({});  // it does not end by itself
  }
  if (phase_ == Phase::running && !what_.shrinks && !failures_.empty()) {
    const bool refused = members_[failures_.front()].status == exit_code(Code::invalid_argument);
    settle(refused ? refusal_time : settle_time);
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
  deadline_ = now + (phase_ == Phase::terminating && told_.by == SIGTERM ? time_to_save : kGrace);
}

void Launcher::pass_on(int signal) {
  tell_listeners(signal);
  for (const auto& member : members_) {
    if (member.in && !member.ended) signal_keeper(member, signal);
  }
}

void Launcher::tell_all(int signal) {
  for (auto& member : members_) {
    if (member.pid <= 0 || member.ended) continue;
    member.told_to_end = true;
    member.killed = signal == SIGKILL;
    member.in ? signal_keeper(member, signal) : ending_.tell_group(member.pid, signal);
  }
}

// Ends all that is left below this process and reaps it: members, their groups, and what left those groups. Who was
// told to end keeps the time it was given. The last to live is a child of this process, whose end is a signal; what was born meanwhile
// is told at the next look.
void Launcher::end_everything(int signal) {
  fork_server_.reset();
  const Instant start = steady_now();
  const bool told_before = told_.by != 0;
  for (;;) {
    const Instant last = phase_ == Phase::terminating ? deadline_ : start + kGrace;
    const Instant now = steady_now();
    if (now > last + kGrace) break;
    if (now > last || (told_.by != 0 && !told_before)) signal = SIGKILL;
    if (!ending_.tell_all(signal, watcher_ ? watcher_->pid() : -1)) break;
    pollfd something{signals_.get(), POLLIN, 0};
    if (::poll(&something, 1, look_again) > 0) read_signals();
  }
  collect();
  watcher_.reset();
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// What is there to be read; its streams are at their ends then.
void Launcher::drain(unsigned rank) {
  for (auto stream : {Console::out, Console::err}) {
    net::Descriptor& fd = members_[rank].streams[stream];
    for (pollfd ready{fd.get(), POLLIN, 0}; fd && ::poll(&ready, 1, 0) > 0;) read_output(rank, stream);
    if (fd) console_.finish(rank, stream);
  }
}

Ended launch(const Launch& what) { return Launcher(what).run(); }

}  // namespace shoal::app
