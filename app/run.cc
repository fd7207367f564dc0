// shoal run -n 4 [--lab NAME] -- CMD
#include <filesystem>

#include <fmt/format.h>

#include "app/command.h"
#include "app/run.h"
#include "shoal/core/error.h"
#include "shoal/observe/run_folder.h"

namespace shoal::app {

namespace fs = std::filesystem;

namespace {

// A name for a run of this command line: "python train.py" -> "train".
std::string name_of_command(const std::string& program, const std::string& first_argument) {
  std::string name = fs::path(program).filename();
  if (name.starts_with("python") && !first_argument.empty() && !first_argument.starts_with('-')) {
    name = fs::path(first_argument).stem();
  }
  return observe::RunFolder::fitting(name);
}

}  // namespace

void declare_members(CLI::App& app, RunOptions& options) {
  flag(app, "-n,--members", options.members, "members to start on this machine");
  flag(app, "--lab", options.lab, "member i runs on host i of this lab (shoal lab up)");
  flag(app, "--name", options.name, "of the run, for its folder (default: the command's)");
}

void declare_verbose(CLI::App& app, RunOptions& options) {
  switch_on(app, "--verbose", options.verbose, "each member says where it reaches the others");
}

bool runs_alone(const CLI::App& app, const RunOptions& options) {
  if (app.get_option("--members")->count() > 0) return false;
  if (!options.lab.empty()) throw Error(Code::invalid_argument, "says where members run, and there are none", "--lab", "add -n");
  return true;
}

int run_members(const RunOptions& options, const std::vector<std::string>& command, Console::Show show) {
  if (options.members < 1 || options.members > most_members) {
    throw Error(Code::invalid_argument,
                fmt::format("a run has 1 to {} members, not {}", most_members, options.members), "-n");
  }
  find_program(command[0]);  // a mistyped command leaves no run folder behind
  Launch what;
  what.command = command;
  what.members = static_cast<unsigned>(options.members);
  what.show = show;
  if (!options.lab.empty()) {
    what.lab = find_lab(options.lab);
    if (what.lab->hosts.size() < what.members) {
      throw Error(Code::invalid_argument,
                  fmt::format("lab {} has {} hosts for {} members", options.lab, what.lab->hosts.size(),
                              what.members),
                  "--lab", fmt::format("-n {}, or a larger lab", what.lab->hosts.size()));
    }
  }
  if (options.verbose) what.environment.emplace_back("SHOAL_VERBOSE", "1");
  if (!options.plan.empty()) {
    if (!fs::is_regular_file(options.plan))
      throw Error(Code::invalid_argument, "no such file: " + options.plan, "--plan");
    what.environment.emplace_back("SHOAL_PLAN", fs::absolute(options.plan));
  }
  const std::string name =
      options.name.empty() ? name_of_command(command[0], command.size() > 1 ? command[1] : "") : options.name;
  what.folder = observe::RunFolder::create(fs::absolute("runs"), name, "--name").path();
  return launch(what);
}

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  declare_members(app, *options);
  app.get_option("--members")->required();
  declare_verbose(app, *options);
  flag(app, "--plan", options->plan, "replay this plan.json");
  accept_command(app);
  return [&app, options](const Words& after_dashes) {
    return run_members(*options, trailing_command(app, after_dashes), Console::Show::every_rank);
  };
}

}  // namespace shoal::app
