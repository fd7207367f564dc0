// The launcher of launcher.h at work: what it has started, and in which phase it is. Threads: one.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/account.h"
#include "app/assignment.h"
#include "app/fork_server.h"
#include "app/generations.h"
#include "app/joining.h"
#include "app/launcher.h"
#include "app/meeting_point.h"
#include "app/member.h"
#include "app/processes.h"
#include "app/terminal.h"
#include "app/watcher.h"
#include "shoal/core/error.h"
#include "shoal/core/time.h"

namespace shoal::app {

inline constexpr Nanoseconds settle_time = std::chrono::seconds(5);  // after a failure, for the others to end by themselves

// Lifetime of all that it has started ends with it.
class Launcher {
 public:
  explicit Launcher(const Launch& what)
      : what_(what), console_(what.members, {screen(1), screen(2)}, what.show), members_(what.members) {}
  ~Launcher() { end_everything(SIGKILL); }

  Ended run();

 private:
  enum class Phase { running, settling, terminating, killing };

  void watch_signals();
  void start_all();
  void start_members();
  void start(unsigned rank, const Comes& comes);
  void open_log(unsigned rank);
  void replace_lost();  // from here on launcher_others.cc
  void take_more();
  void start_more();
  void begin_with_more();
  void do_without_more(const Error& why);
  unsigned belonging() const { return more_ ? more_->before.members : what_.members; }  // members, but for those; here its part ends
  bool far() const { return !what_.far.empty(); }
  int beat();
  void take(unsigned rank, Console::Stream stream, std::string_view bytes);
  std::size_t living() const;
  bool only_stopped();  // those that live, while others have ended
  void wait();
  void read_signals();
  void read_output(unsigned rank, Console::Stream stream);
  void collect();
  void advance();
  void settle(Nanoseconds time) { phase_ = Phase::settling, deadline_ = steady_now() + time; }
  void pass_on(int signal);  // to members that handle it
  void tell_all(int signal);
  void end_everything(int signal);
  void drain(unsigned rank);
  unsigned rank_of(const Member& member) const { return static_cast<unsigned>(&member - members_.data()); }

  Launch what_;
  std::optional<Watcher> watcher_;  // gone after everything that it watches
  Console console_;
  std::string program_;
  std::vector<Member> members_;
  std::vector<Member> replaced_;  // zombies, like all that have ended
  std::optional<MeetingPoint> meeting_point_;
  std::optional<Generations> generations_;
  std::optional<ForkServer> fork_server_;
  bool started_ = false;  // all that there are at the beginning
  std::optional<Joining> joining_;
  struct More {                   // members that have been started, and do not belong to it yet
    JoinRequest request;
    Launch before;
    unsigned attempt;
  };
  std::optional<More> more_;
  unsigned attempts_ = 0;
  net::Descriptor signals_;
  Instant next_beat_{}, next_look_{}, next_look_at_joining_{};
  Phase phase_ = Phase::running;
  Instant deadline_ = Instant::max();  // of the phase
  Told told_;
  Ending ending_;
  bool given_up_ = false;
  std::vector<unsigned> failures_;  // ranks, as they were noticed
};

}  // namespace shoal::app
