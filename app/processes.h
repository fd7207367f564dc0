// The processes below this one: members, what they started, and what those left behind.
#pragma once

#include <sys/types.h>

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
// Signals a member's group, stopped processes too. The group's leader must not have been reaped: else its
// number may be somebody else's.
void signal_group(pid_t leader, int signal);

}  // namespace shoal::app
