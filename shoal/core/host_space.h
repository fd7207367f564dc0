// A machine inside this one.
#pragma once

#include <string>

namespace shoal {

// A network namespace and a host name. An empty path means this machine itself.
struct HostSpace {
  std::string network;  // "/run/netns/shoal-demo-0"
  std::string name;     // "host0"
};

// Puts the calling thread (before exec: the process) into the host's network namespace with its own host name
// and a /sys that shows that network. Only calls that are safe between fork and exec. Returns the name of the
// step that failed, with errno, or nullptr.
const char* enter(const HostSpace& host);

}  // namespace shoal
