// What every command that starts members shares: `run` itself, `train -n`, `doctor -n`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/launcher.h"

namespace shoal::app {

inline constexpr int most_members = 1024;

struct RunOptions {
  int members = 0;  // 0: not given
  int servers = 0;  // beside them, that only serve
  std::string lab, name, plan, hosts;
  std::string interface, ports;  // of members and coordinator
  std::string on_peer_lost;      // fail, shrink, rejoin or regrow
  std::optional<unsigned> restarts;  // times that the run begins again with the members that are left, or by rejoin and regrow that a lost one is replaced
  bool cold = false;                 // members are not forked (fork_server.h)
  bool verbose = false;
};

void declare_members(CLI::App& app, RunOptions& options);
// Without -n a command that needs no members runs alone. Throws Error{invalid_argument} if --lab asks for some.
bool runs_alone(const CLI::App& app, const RunOptions& options);
void declare_losses(CLI::App& app, RunOptions& options);   // --on-peer-lost, --restarts
void declare_python(CLI::App& app, RunOptions& options);  // --verbose, --cold
// A plan as members understand it, wherever they start: a saved one by its whole path. Throws Error{invalid_argument} if it is none.
std::string checked_plan(const std::string& text);
inline constexpr const char* plan_help =
    "auto (default), poseidon, wfbp, p3, ddp:25MB, local:8, diloco:16, ps:ssp:3, a way such as ring, GLOB=WAY, or a saved plan.json";
// Checks the options, makes the run's folder, starts the members and waits for their end. Returns the exit
// status.
int run_members(const RunOptions& options, const std::vector<std::string>& command, Console::Show show);

}  // namespace shoal::app
