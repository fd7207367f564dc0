// A machine inside this one, and how a process becomes a member there: a launcher does it between fork and exec, and a Python that is forked to be a member
// (app/fork_server.h) instead of these.
#pragma once

#include <sys/types.h>

#include <string>

namespace shoal::net {

// A network namespace and a host name. An empty path means this machine itself.
struct HostSpace {
  std::string network;  // "/run/netns/shoal-demo-0"
  std::string name;     // "host0"
};

// Both use only calls that are safe between fork and exec, and return the name of the step that failed, with errno, or nullptr.
//
// Puts the calling thread (before exec: the process) into the host's network namespace with its own host name and a /sys that shows that network.
const char* enter(const HostSpace& host);
// Makes the calling process the leader of a group of its own, which is killed when its parent dies, and puts it on the host. It ends at once if its parent is not
// `launcher` any more.
const char* become_member(const HostSpace& host, pid_t launcher);

}  // namespace shoal::net
