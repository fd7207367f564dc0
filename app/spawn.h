// Starting processes: members of a run, and the small tools (`ip`, `tc`) that a lab is made with.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "shoal/core/host_space.h"
#include "shoal/core/time.h"
#include "shoal/net/descriptor.h"

namespace shoal::app {

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
// A process whose input is a socket: for those who talk both ways.
Talking start_asked(const std::string& program, const std::vector<std::string>& words, const Environment& environment);

// Pipes for the outputs of a process that somebody else starts: `child` has the reading ends, and no process yet.
struct Outputs {
  Child child;
  net::Descriptor out, err;
};
Outputs make_outputs();
// Adds what is there of such an output to `text`, which keeps at most 1 MB; at its end closes it.
void read_available(net::Descriptor& from, std::string& text);
// Both ends of a socket.
std::pair<net::Descriptor, net::Descriptor> make_sockets();

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
