// Processes that wait to take the place of a lost member (`shoal run --on-peer-lost rejoin` or `regrow`): of what it costs to start one, nearly all is the import of
// PyTorch and Shoal, and a spare has done that before.
//
// A spare is the command's own Python, with its flags: it imports (python/shoal/spare.py), says by one byte that it is ready and sleeps on a socket. When a
// member is lost it is told that member's environment and runs the command's script or module as `__main__`, in a process that has been a child of this
// one from the beginning: group, outputs and end are a member's. Nobody waits for a spare: where none is ready the process is started cold.
// What it says before it is taken is shown, as a member's, once it is one.
//
// Spares begin one after another: their imports take a core each. A spare that ends is replaced, kMostEnds times in a row; a spare that was taken, too, but not
// in the step that waits for it. Hosts are those of a lab, each with spares of its own, or this machine. Threads: one. Lifetime: this ends with its
// launcher, which ends the processes as it ends its members; a spare whose socket closes ends by itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/launcher.h"
#include "app/meeting_point.h"
#include "app/spawn.h"
#include "shoal/core/time.h"

namespace shoal::app {

// The command as a Python that stands by would have it; nothing where it is no `python [FLAGS] SCRIPT.py ...` or `python [FLAGS] -m MODULE ...` with flags that
// change nothing of this.
std::optional<std::vector<std::string>> standing_by(const std::vector<std::string>& command);

class Spares {
 public:
  static constexpr unsigned kMostEnds = 3;  // in a row, before they were taken: then something is wrong with them, and there are no more

  // Of a run whose command stands by, what.spares on each host; program: the command's. at, as members are told.
  Spares(const Launch& what, const std::string& program, const MeetingPoint& at);

  // Some times a second: starts those that are missing. Returns what people should know, or nothing.
  std::string look();
  // A ready one on that host, which has been told to be the member with this environment; nothing where none is ready.
  std::optional<Child> take(const HostSpace& host, const Environment& of_member);

 private:
  struct Spare {
    HostSpace host;
    Talking process;       // its `in`: our end of its socket; none while there is no process
    bool ready = false;
    Instant not_before{};  // the next is started
  };
  void notice(Spare& spare);  // that it is ready, or has ended
  void end(Spare& spare, const std::string& last_words);

  const std::string program_;
  const std::vector<std::string> words_;
  Environment environment_;  // a member's, but for its rank
  std::vector<Spare> spares_;
  unsigned ended_ = 0;
  bool said_ = false;       // that there are no more
  std::string last_words_;  // of the one that ended last
};

}  // namespace shoal::app
