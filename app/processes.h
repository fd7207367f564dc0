// The processes below this one: members, what they started, and what those left behind.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace shoal::app {

struct Process {
  pid_t pid = 0, parent = 0;
  char state = '?';  // Z: ended, not yet reaped
};

// From now on a process whose parent dies becomes this process's child, so that none is lost sight of.
void adopt_orphans();
// All descendants of this process, zombies included.
std::vector<Process> descendants();
// Processes of this machine that were started with this variable ("NAME=value") in their environment, as far as we may see it.
std::vector<pid_t> processes_with(const std::string& variable);
std::string name_of(pid_t pid);          // empty if it has ended
bool catches(pid_t pid, int signal);     // has a handler for it
// Those descendants that handle it: the default of USR1 would end a shell in which a member was wrapped.
void tell_listeners(int signal);
// All descendants that live, stopped ones too, but for `spared`; a signal that may be ignored only once each (`told`). False if none lives.
bool tell_descendants(int signal, std::set<pid_t>& told, pid_t spared = -1);
// Signals a member's group, stopped processes too. The group's leader must not have been reaped: else its
// number may be somebody else's.
void signal_group(pid_t leader, int signal);

}  // namespace shoal::app
