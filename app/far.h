// Members on other hosts. `shoal run --hosts` starts one ssh for each, and on the far host the same program as its keeper
// (`shoal far-member`), which starts the member, ends it when it is told to, and ends it too when the connection is lost.
//
// Over the connection: the assignment (folder, environment with the job's secret, command) comes by standard input and never
// by a command line, which others could read and a shell would take apart. Then lines: a number is a signal for the member, an empty
// one says that the launcher lives. The keeper's first words on standard output say that it is there; before them comes what
// login scripts print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/spawn.h"

namespace shoal::app {

struct FarHost {
  std::string name;     // as ssh takes it: "b", "user@b", "10.0.0.2"
  unsigned slots = 1;
};
// "a,b:2,user@c,[fd00::1]:4". Throws Error{invalid_argument} that repeats the text.
std::vector<FarHost> parse_hosts(const std::string& text);

struct Assignment {
  std::string folder;                // where the member runs
  unsigned slots = 1;                // members on that host
  Environment environment;
  std::vector<std::string> command;
};
Talking start_far(const FarHost& host, const Assignment& assignment);

inline constexpr std::string_view keeper_is_there = "\x06shoal far-member\n";
inline constexpr int ssh_failed = 255;                          // exit status of an ssh without a connection
inline constexpr Nanoseconds far_beat = std::chrono::seconds(5);      // the launcher says so often that it lives
inline constexpr Nanoseconds far_patience = std::chrono::seconds(30); // after which the keeper takes the connection for lost

// This process's environment, less what belongs to its login session.
Environment environment_to_carry();

int keep_far_member();  // `shoal far-member`: returns the exit status

}  // namespace shoal::app
