// A process of which the members of a run on this machine are forked: nearly all that it costs to start one is the import of PyTorch and Shoal, and this one has
// done that once for all (python/shoal/fork_server.py is the other half).
//
// It is the command's own Python, with its flags. It imports, says by one byte that it is ready and sleeps on a socket, which it gets requests by: a member's
// environment, host and outputs. For each it forks a process that becomes a child of this one (which adopts orphans), with a group, outputs and an end as a
// member's are, and that runs the command's script, module or code as `__main__`. Where it cannot, members are started cold: nobody waits for it but when the run begins.
//
// A server that ends is started again, kMostEnds times in a row. Threads: one. Lifetime: it ends when its socket closes, and with its launcher.
#pragma once

#include <optional>
#include <string>
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
  static constexpr unsigned kMostEnds = 3;  // in a row, and never ready: then something is wrong with it

  // Of a run whose command can be forked. program: the command's. at, as members are told.
  ForkServer(const Launch& what, const std::string& program, const MeetingPoint& at);

  bool importing();                                            // still: neither ready nor ended
  int descriptor() const { return process_.socket.get(); }     // while it imports: readable when it does not any more
  std::string said();                                          // by its imports, at both outputs, since it was asked for last
  // A member with that environment on that host; nothing where there is no server that is ready. Throws Error as start_member() does.
  std::optional<Child> start(const HostSpace& host, const Environment& of_member);
  // Some times a second: starts one that has ended again. Returns what people should know, or nothing.
  std::string look();

 private:
  void begin();
  void notice();  // that it is ready, or has ended
  void end();

  const std::string program_;
  const std::vector<std::string> words_;
  Environment environment_;  // a member's, but for its rank
  Asked process_;            // no socket: none
  bool ready_ = false;
  unsigned ended_ = 0;
  bool told_ = false;        // that there are no more
  Instant not_before_{};     // the next is started
  std::string last_words_;   // of the one that ended last
};

}  // namespace shoal::app
