// The processes below this one: members, what they started, and what those left behind.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "shoal/core/time.h"

namespace shoal::app {

struct Process {
  pid_t pid = 0, parent = 0, group = 0;
  char state = '?';  // Z: ended, not yet reaped
};

// From now on a process whose parent dies becomes this process's child, so that none is lost sight of.
void adopt_orphans();
// All descendants of this process, zombies included.
std::vector<Process> descendants();
std::vector<pid_t> stopped_descendants();  // they stand still until somebody tells them to go on
// Processes of this machine that were started with this variable ("NAME=value") in their environment, as far as we may see it.
std::vector<pid_t> processes_with(const std::string& variable);
std::string name_of(pid_t pid);          // empty if it has ended
bool catches(pid_t pid, int signal);     // has a handler for it
// Those descendants that handle it: the default of USR1 would end a shell in which a member was wrapped.
void tell_listeners(int signal);

// How often to look for descendants that were born while others were ended. Milliseconds.
inline constexpr int look_again = 200;
inline constexpr Nanoseconds kGrace = std::chrono::seconds(5);  // between TERM and KILL

// Ends descendants, stopped ones too. Each is told only once, but for KILL: a program that is saving may take a second TERM
// for "at once".
class Ending {
 public:
  // A member's group. Its leader must not have been reaped: else its number may be somebody else's.
  void tell_group(pid_t leader, int signal);
  // All that live, but for `spared`. False if none does.
  bool tell_all(int signal, pid_t spared = -1);

 private:
  std::set<pid_t> told_;
};

}  // namespace shoal::app
