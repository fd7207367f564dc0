// Starts the members of a run, here or on other hosts by ssh (far.h), shows what they say and sees to it that they all end.
//
// The launcher hosts the coordinator where members meet: with a lab inside host 0's network, for other hosts on all
// addresses of this one, else on loopback. Each member leads a process group; whatever a member starts ends with the run, daemons
// included (the launcher is their subreaper), and also if the launcher is killed (watcher.h). TERM comes first, KILL 5 s later; 30 s
// where this process itself was told to end by TERM, because members save their state first. USR1 is passed on to those who handle
// it. When one member fails, the others get 5 s to end by themselves, because they then say whom they lost; or they go on without it, where
// the run shrinks; or another is started in its place.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/console.h"
#include "app/far.h"
#include "app/lab.h"
#include "shoal/net/job.h"

namespace shoal::app {

struct Launch {
  std::vector<std::string> command;
  std::vector<std::string> fork_server{};  // the command's Python, of which members are forked (fork_server.h); none: each is started by itself
  unsigned members = 1;          // all of them
  unsigned servers = 0;          // of them, the last ones: they only serve (SHOAL_ROLE)
  std::optional<Lab> lab;        // member i runs on host i
  std::vector<FarHost> far;      // by rank; empty: this machine
  net::JoinOptions where;        // interface and ports of the coordinator
  std::filesystem::path folder;  // of the run, absolute
  Environment environment;       // beyond SHOAL_RANK, SHOAL_SIZE, ...
  Console::Show show = Console::Show::every_rank;
  bool shrinks = false;          // members go on without those that are lost
  std::optional<unsigned> replacements;  // so often another is started in place of one that is lost (net::replaces_lost())
  bool waits_for_others = false;                 // and training stands still until it has come; else it goes on
  bool replaces_all() const { return replacements && waits_for_others; }  // who is lost: nobody else does its work
  HostSpace host_of(unsigned rank) const { return lab ? lab->hosts[rank].space() : HostSpace{}; }
};

struct Ended {
  // As verdict.h has it: 0, that of the member that failed first, or 128 + n if this process was told to end by signal n and the members ended as
  // they were told. 2 if a host could not be reached, 3 if the connection with one was lost.
  int status = 0;
  std::vector<unsigned> lost;  // ranks that were killed by somebody else, or whose hosts were lost, where the run failed and nobody told it to end
};
// Throws Error if a member cannot be started; then none is left running.
Ended launch(const Launch& what);

}  // namespace shoal::app
