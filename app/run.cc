// shoal run -n 4 [--lab NAME] -- CMD
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "app/command.h"
#include "app/fork_server.h"
#include "app/run.h"
#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "shoal/core/text.h"
#include "shoal/exchange/choice.h"
#include "shoal/exchange/plan.h"
#include "shoal/net/again.h"
#include "shoal/net/interface.h"
#include "shoal/observe/run_folder.h"

namespace shoal::app {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t largest_plan = 256 << 20;
constexpr unsigned most_replacements = 100;  // a member that is lost at the same place each time must not begin for ever

// Where that saves imports: for several members, or others in the places of lost ones.
std::vector<std::string> fork_server_of(const Launch& what) {
  const bool saves = what.far.empty() && (what.members > 1 || what.replacements);
  return saves ? forking(what.command).value_or(std::vector<std::string>{}) : std::vector<std::string>{};
}

// A name for a run of this command line: "python train.py" -> "train".
std::string name_of_command(const std::string& program, const std::string& first_argument) {
  std::string name = fs::path(program).filename();
  if (name.starts_with("python") && !first_argument.empty() && !first_argument.starts_with('-')) {
    name = fs::path(first_argument).stem();
  }
  return observe::RunFolder::fitting(name);
}

// Ranks fill the hosts in their order, as many as they have slots; -n may leave the last ones free.
void place_on_hosts(const RunOptions& options, Launch& what) {
  if (!options.lab.empty()) throw Error(Code::invalid_argument, "--lab has hosts of its own", "--hosts");
  for (const FarHost& host : parse_hosts(options.hosts)) what.far.insert(what.far.end(), host.slots, host);
  if (options.members == 0) what.members = static_cast<unsigned>(what.far.size());
  if (options.members < 0 || what.members > what.far.size()) {
    throw Error(Code::invalid_argument, fmt::format("{} members do not fit on {} slots", options.members + options.servers, what.far.size()), "--hosts",
                "say how many a host takes, as in a:4,b:4");
  }
  what.far.resize(what.members);
}

// Those that only serve are the last of all members.
void add_servers(const RunOptions& options, Launch& what) {
  if (options.servers < 0) throw Error(Code::invalid_argument, fmt::format("{} members that only serve", options.servers), "--servers", "0 or more");
  what.servers = static_cast<unsigned>(options.servers);
  if (options.members > 0) what.members += what.servers;
  if (what.servers > 0 && !options.on_peer_lost.empty() && options.on_peer_lost != "fail")
    throw Error(Code::invalid_argument, "where members only serve a run ends with the first that is lost", "--on-peer-lost", "fail, or no --servers");
}

// Members that were lost leave their places; the others take up what was kept, as --resume has them.
void go_on_without(std::vector<unsigned> lost, Launch& what) {
  std::ranges::sort(lost, std::greater());
  for (const unsigned rank : lost) {
    if (rank >= what.members - what.servers) --what.servers;
    --what.members;
    if (!what.far.empty()) what.far.erase(what.far.begin() + rank);
    if (what.lab) what.lab->hosts.erase(what.lab->hosts.begin() + rank);
  }
  const std::pair<std::string, std::string> resume{"SHOAL_RESUME", "1"};
  if (std::ranges::find(what.environment, resume) == what.environment.end()) what.environment.push_back(resume);
}

}  // namespace

void declare_members(CLI::App& app, RunOptions& options) {
  flag(app, "-n,--members", options.members, "members to start on this machine");
  flag(app, "--hosts", options.hosts, "start them by ssh on these hosts: a,b:2 is one member on a, two on b");
  flag(app, "--interface", options.interface, "members use this network interface only");
  flag(app, "--port-range", options.ports, "members listen on these ports only, as in 20000-20100");
  flag(app, "--lab", options.lab, "member i runs on host i of this lab (shoal lab up)");
  flag(app, "--name", options.name, "of the run, for its folder (default: the command's)");
}

void declare_python(CLI::App& app, RunOptions& options) {
  switch_on(app, "--verbose", options.verbose, "each member says where it reaches the others");
  switch_on(app, "--cold", options.cold, "each member imports PyTorch for itself (default: members on this machine whose command is Python are forked from one process that has)");
}

void declare_losses(CLI::App& app, RunOptions& options) {
  flag(app, "--on-peer-lost", options.on_peer_lost, "when a member is lost: fail (all end), shrink (the others go on: training and shared rows), rejoin (training waits for "
       "another that is started in its place), or regrow (it goes on until another has come)");
  flag(app, "--restarts", options.restarts,
       "when a member is killed or its host is lost, begin again with those that are left and --resume, so many times (default: 0); with rejoin and regrow: so "
       "often another is started in place of a lost one (default: 100)");
}

bool runs_alone(const CLI::App& app, const RunOptions& options) {
  if (app.get_option("--members")->count() > 0 || !options.hosts.empty()) return false;
  if (!options.lab.empty()) throw Error(Code::invalid_argument, "says where members run, and there are none", "--lab", "add -n");
  return true;
}

std::string checked_plan(const std::string& text) {
  const exchange::Choice choice = exchange::parse_choice(text, "--plan");
  if (choice.file.empty()) return text;
  if (!fs::is_regular_file(choice.file)) throw Error(Code::invalid_argument, "no such file: " + choice.file, "--plan");
  exchange::plan_from_json(read_whole_text(choice.file, largest_plan), choice.file);  // one line here, not one of each member
  return fs::absolute(choice.file);
}

int run_members(const RunOptions& options, const std::vector<std::string>& command, Console::Show show) {
  Launch what;
  what.members = static_cast<unsigned>(std::max(0, options.members));
  add_servers(options, what);
  if (!options.hosts.empty()) place_on_hosts(options, what);
  if ((options.hosts.empty() && options.members < 1) || what.members > most_members) {
    throw Error(Code::invalid_argument,
                fmt::format("a run has 1 to {} members, not {}", most_members,
                            options.hosts.empty() && options.members < 1 ? options.members : static_cast<int>(what.members)),
                options.hosts.empty() ? "-n" : "--hosts");
  }
  if (what.servers >= what.members) {
    throw Error(Code::invalid_argument, fmt::format("all {} members only serve, and nobody trains", what.members), "--servers", "add hosts or slots");
  }
  if (options.hosts.empty()) find_program(command[0]);  // a mistyped command leaves no run folder behind
  what.command = command;
  what.show = show;
  what.where.interface = options.interface;
  if (!options.interface.empty()) {
    if (options.lab.empty()) net::check_interface(options.interface, "--interface");  // a lab's hosts have interfaces of their own
    what.environment.emplace_back("SHOAL_INTERFACE", options.interface);
  }
  if (!options.ports.empty()) {
    what.where.ports = net::parse_port_range(options.ports, "--port-range");
    what.environment.emplace_back("SHOAL_PORT_RANGE", options.ports);
  }
  if (!options.lab.empty()) {
    what.lab = find_lab(options.lab);
    if (what.lab->hosts.size() < what.members) {
      throw Error(Code::invalid_argument,
                  fmt::format("lab {} has {} hosts for {} members", options.lab, what.lab->hosts.size(),
                              what.members),
                  "--lab", fmt::format("-n {}, or a larger lab", what.lab->hosts.size()));
    }
  }
  if (!options.on_peer_lost.empty()) {
    const auto policy = net::on_peer_lost_from(options.on_peer_lost, "--on-peer-lost");
    what.shrinks = net::goes_on(policy);
    if (net::replaces_lost(policy)) what.replacements = options.restarts.value_or(most_replacements);
    what.waits_for_others = policy != net::OnPeerLost::regrow;
    what.environment.emplace_back("SHOAL_ON_PEER_LOST", options.on_peer_lost);
  }
  if (options.verbose) what.environment.emplace_back("SHOAL_VERBOSE", "1");
  if (!options.plan.empty()) what.environment.emplace_back("SHOAL_PLAN", checked_plan(options.plan));
  const std::string name =
      options.name.empty() ? name_of_command(command[0], command.size() > 1 ? command[1] : "") : options.name;
  const unsigned restarts = what.replacements ? 0 : options.restarts.value_or(0);
  for (unsigned restart = 0;; ++restart) {
    what.folder = observe::RunFolder::create(fs::absolute("runs"), name, "--name").path();
    if (!options.cold) what.fork_server = fork_server_of(what);
    const Ended ended = launch(what);
    if (ended.lost.empty() || ended.lost.size() >= what.members || restart == restarts) return ended.status;
    go_on_without(ended.lost, what);
    if (what.servers == what.members) return ended.status;  // nobody is left to train
    fmt::print(stderr, "shoal: begins again with {}, from what was kept (restart {} of {})\n", show_count(what.members, "members"), restart + 1,
               restarts);
  }
}

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  declare_members(app, *options);
  declare_python(app, *options);
  declare_losses(app, *options);
  flag(app, "--servers", options->servers, "so many members more, which only serve: they add gradients for shoal.data_parallel(), or hold rows of shoal.Table");
  flag(app, "--plan", options->plan, plan_help);
  accept_command(app);
  return [&app, options](const Words& after_dashes) {
    if (runs_alone(app, *options)) throw Error(Code::invalid_argument, "how many members?", "shoal run", "-n 4, or --hosts a,b,c");
    return run_members(*options, trailing_command(app, after_dashes), Console::Show::every_rank);
  };
}

}  // namespace shoal::app
