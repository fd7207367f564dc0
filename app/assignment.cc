#include "app/assignment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "app/terminal.h"
#include "shoal/core/host.h"
#include "shoal/net/again.h"

namespace shoal::app {

Environment environment_of(const Launch& what, unsigned rank, const MeetingPoint& at, const Comes& comes) {
  Environment environment = what.environment;
  if (comes.generation > 0) environment.emplace_back("SHOAL_GENERATION", std::to_string(comes.generation));
  if (comes.attempt > 0) environment.emplace_back(net::kJoinsVariable, std::to_string(comes.attempt));
  environment.insert(environment.end(), {{"SHOAL_RANK", std::to_string(rank)},
                                         {"SHOAL_SIZE", std::to_string(what.members)},
                                         {"SHOAL_COORD", at.address()},
                                         {"SHOAL_SECRET", at.secret()},
                                         {"SHOAL_JOB", what.folder.filename()},
                                         {"SHOAL_RUN_DIR", what.folder}});
  if (what.servers > 0) environment.emplace_back("SHOAL_ROLE", rank < what.members - what.servers ? "worker" : "server");
  // They say how to start members, which these are.
  for (const char* flag : {"SHOAL_MEMBERS", "SHOAL_SERVERS", "SHOAL_HOSTS", "SHOAL_LAB", "SHOAL_COLD"}) {
    if (std::getenv(flag)) environment.emplace_back(flag, "");
  }
  if (!std::getenv("OMP_NUM_THREADS") && what.far.empty()) {
    environment.emplace_back("OMP_NUM_THREADS", std::to_string(std::max<std::size_t>(1, usable_cores().size() / what.members)));
  }
  // Members write into pipes: say that a person is watching behind them, and let lines come as they are
  // printed.
  if (::isatty(2)) environment.emplace_back("SHOAL_TERMINAL", std::to_string(screen(2).columns));
  if (!std::getenv("PYTHONUNBUFFERED")) environment.emplace_back("PYTHONUNBUFFERED", "1");
  return environment;
}

Assignment assignment_of(const Launch& what, unsigned rank, const MeetingPoint& at, const Comes& comes) {
  Assignment assignment{std::filesystem::current_path(), what.far[rank].slots, environment_to_carry(), what.command};
  for (const auto& one : environment_of(what, rank, at, comes)) assignment.environment.push_back(one);
  return assignment;
}

}  // namespace shoal::app
