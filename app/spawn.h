// Starting processes: members of a run, and the small tools (`ip`, `tc`) that a lab is made with.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/net/descriptor.h"

namespace shoal::app {

// A machine inside this one: a network namespace and a host name. An empty path means this machine itself.
struct HostSpace {
  std::string network;  // "/run/netns/shoal-demo-0"
  std::string name;     // "host0"
};

// Puts the calling thread (before exec: the process) into the host's network namespace with its own host name
// and a /sys that shows that network. Only calls that are safe between fork and exec. Returns the name of the
// step that failed, with errno, or nullptr.
const char* enter(const HostSpace& host);

using Environment = std::vector<std::pair<std::string, std::string>>;  // set on top of this process's own

struct Child {
  pid_t pid = -1;
  net::Descriptor out, err;  // reading ends, non-blocking
};

// The file that `word` names, by PATH as a shell would. Throws Error{invalid_argument} if there is none.
std::string find_program(const std::string& word);

// Starts words[0] in a process group of its own; it is killed when this process dies. Standard input is
// empty.
Child start_member(const std::string& program, const std::vector<std::string>& words,
                   const Environment& environment, const HostSpace& host);

// The same with this process's own outputs.
pid_t start_attached(const std::string& program, const std::vector<std::string>& words, const Environment& environment);
// With a pipe for its input, too: a tool to talk to (ssh).
struct Talking {
  Child child;
  net::Descriptor in;
};
Talking start_talking(const std::string& program, const std::vector<std::string>& words);
// A member whose input is a socket at first: what it is to be it is told later (spares.h).
Talking start_standing_by(const std::string& program, const std::vector<std::string>& words, const Environment& environment, const HostSpace& host);

// Replaces this process. Returns only by throwing.
[[noreturn]] void become(const std::vector<std::string>& words, const Environment& environment,
                         const HostSpace& host);

struct ToolResult {
  int status = 0;  // exit status, or 128 + signal
  std::string out, err;
};
// Runs a tool to its end, without a shell. Throws Error{unsupported} if it is not installed.
ToolResult run_tool(const std::vector<std::string>& words, Nanoseconds limit = std::chrono::seconds(10));
// What a process says about its failure: the last line of its err that is not blank.
std::string last_line(std::string err);

}  // namespace shoal::app
