// A process of which the members of a run on this machine are forked: nearly all that it costs to start one is the import of PyTorch and Shoal, and this one has
// done that once for all (python/shoal/fork_server.py is the other half).
//
// It is the command's own Python, with its flags. It imports, says by one byte that it is ready and sleeps on a socket, which it gets requests by: a member's
// environment, host and outputs, and one end of a socket of that member alone. The process that it forks becomes a child of this one (which adopts orphans), with a group, outputs and an
// end as a member's are. It says its number by that socket, and runs the command's script, module or code as `__main__` only when it has been answered: a member that comes too late, after
// this process has started it cold, is none. Where there is nobody to fork members they start cold; nobody waits for the server but when the run begins.
//
// A server that ends is started again, but not when kMostEnds in a row have forked nobody. Threads: one. The process ends with this object and with its launcher.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/launcher.h"
#include "app/meeting_point.h"
#include "app/spawn.h"
#include "shoal/core/time.h"

namespace shoal::app {

// The command as a Python that would fork it; nothing where it is no `python [FLAGS] SCRIPT.py ...`, `python [FLAGS] -m MODULE ...` or `python [FLAGS] -c CODE ...` with flags
// that change nothing of this.
std::optional<std::vector<std::string>> forking(const std::vector<std::string>& command);

class ForkServer {
 public:
  static constexpr unsigned kMostEnds = 3;

  // Of a run whose command can be forked. program: the command's. at, as members are told.
  ForkServer(const Launch& what, const std::string& program, const MeetingPoint& at);
  ~ForkServer() { stop(); }

  bool importing();                          // still: neither ready nor ended
  std::vector<int> descriptors() const;      // readable where that may have changed
  pid_t pid() const { return process_.child.pid; }  // who else reaps children leaves it alone; -1: none
  // By its imports, at each of the outputs, since it was asked for last; by one that has ended before it was ready: nothing.
  std::pair<std::string, std::string> said();
  const std::string& last_words() const { return last_words_; }  // of the one that ended last
  // A member with that environment on that host; nothing where nobody forks it. Throws Error as start_member() does where the host is what it cannot enter.
  std::optional<Child> start(const HostSpace& host, const Environment& of_member);
  // Some times a second: starts one that has ended again. Returns what people should know, or nothing.
  std::string look();

 private:
  void begin();
  void notice();  // that it is ready, or has ended
  void stop();
  void end();

  const std::string program_;
  const std::vector<std::string> words_;
  Environment environment_;  // a member's, but for its rank
  Talking process_;          // no socket: none
  bool ready_ = false;
  std::string out_, err_;    // what it has said
  unsigned ended_ = 0;
  bool told_ = false;        // that there are no more
  Instant not_before_{};     // the next is started
  std::string last_words_;
};

}  // namespace shoal::app
