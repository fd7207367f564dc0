// Starts the members of a run on this machine, shows what they say and sees to it that they all end.
//
// The launcher hosts the coordinator where members meet: with a lab inside host 0's network, else on
// loopback. Each member leads a process group; whatever a member starts ends with the run, daemons included
// (the launcher is their subreaper). TERM comes first, KILL 5 s later. When one member fails, the others get
// 5 s to end by themselves, because they then say whom they lost.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/console.h"
#include "app/lab.h"

namespace shoal::app {

struct Launch {
  std::vector<std::string> command;
  unsigned members = 1;
  std::optional<Lab> lab;        // member i runs on host i
  std::filesystem::path folder;  // of the run, absolute
  Environment environment;       // beyond SHOAL_RANK, SHOAL_SIZE, ...
  Console::Show show = Console::Show::every_rank;
};

// Returns the exit status: 0, or that of the member that failed first (for one that was killed by signal n 3 if
// others ended because they lost it, else 128 + n), or 128 + n if this process was told to end by signal n.
// Throws Error if a member cannot be started; then none is left running.
int launch(const Launch& what);

}  // namespace shoal::app
