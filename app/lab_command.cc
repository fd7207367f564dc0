// shoal lab up | down | exec | list | cut | heal | rate
#include <fmt/format.h>

#include "app/command.h"
#include "app/lab.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/topo/import.h"

namespace shoal::app {
namespace {

struct Options {
  unsigned members = 0;
  std::string rate, rate_down, rates, topology, name = "lab", host;
};

void print_table(const Lab& lab) {
  fmt::print("{:<12} {:<14} {:<16} {:<14} {}\n", "host", "address", "namespace", "up", "down");
  for (const auto& host : lab.hosts) {
    fmt::print("{:<12} {:<14} {:<16} {:<14} {}\n", host.name, host.address, host.network, show_rate(host.up),
               show_rate(host.down));
  }
}

std::vector<LabHost> hosts_of(const Options& options) {
  if (options.rates.empty()) {
    if (options.members == 0) throw Error(Code::invalid_argument, "how many hosts?", "shoal lab up", "-n 4");
    if (options.rate.empty())
      throw Error(Code::invalid_argument, "which rate?", "shoal lab up", "--rate 200mbit");
    return uniform_hosts(options.members, options.rate);
  }
  if (!options.rate.empty())
    throw Error(Code::invalid_argument, "give --rate or --rates, not both", "shoal lab up");
  auto hosts = read_rates(options.rates);
  if (options.members != 0 && options.members != hosts.size()) {
    throw Error(Code::invalid_argument,
                fmt::format("names {} hosts, -n says {}", hosts.size(), options.members), options.rates);
  }
  return hosts;
}

int up(const Options& options) {
  if (!options.topology.empty()) {
    if (options.members != 0 || !options.rate.empty() || !options.rates.empty()) refuse("says hosts and rates: give it alone", "--topology");
    const Wiring wiring = wiring_of(topo::import_topology(std::filesystem::path(options.topology)).topology);
    print_table(lab_up(options.name, wiring.hosts, wiring.trunks));
    return 0;
  }
  print_table(lab_up(options.name, hosts_of(options)));
  return 0;
}

int down(const Options& options) {
  if (!lab_down(options.name)) fmt::print("there is no lab {}: nothing to do\n", options.name);
  return 0;
}

int list(const Options&) {
  for (const auto& lab : list_labs()) {
    fmt::print("lab {}{}\n", lab.name,
               lab.hosts.empty() ? " (half made: shoal lab down " + lab.name + ")" : "");
    if (!lab.hosts.empty()) print_table(lab);
  }
  return 0;
}

int cut(const Options& options) {
  const Lab lab = find_lab(options.name);
  lab_cut(lab, find_host(lab, options.host));
  return 0;
}

int heal(const Options& options) {
  const Lab lab = find_lab(options.name);
  lab_heal(lab, find_host(lab, options.host));
  return 0;
}

int rate(const Options& options) {
  const Lab lab = find_lab(options.name);
  lab_rate(lab, find_host(lab, options.host), options.rate, options.rate_down);
  return 0;
}

}  // namespace

Action declare_lab(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<Options>();
  const auto named = [&](const char* name, const char* summary) {
    CLI::App* verb = app.add_subcommand(name, summary);
    verb->add_option("name", options->name, "the lab")->required();
    return verb;
  };

  CLI::App* up_verb = app.add_subcommand("up", "make hosts; needs root");
  flag(*up_verb, "-n,--members", options->members, "hosts");
  flag(*up_verb, "--rate", options->rate, "of every link, each way: 200mbit");
  flag(*up_verb, "--rates", options->rates, "file with a line for each host: host rate [rate_down]");
  flag(*up_verb, "--topology", options->topology, "hosts and switches as in this file (shoal topo), joined one way");
  flag(*up_verb, "--name", options->name, "of the lab (default: lab)");
  CLI::App* down_verb = named("down", "end what runs inside and remove the lab; no error if there is none");
  CLI::App* list_verb = app.add_subcommand("list", "the labs of this machine");
  CLI::App* cut_verb = named("cut", "take a host's cable out of the switch");
  CLI::App* heal_verb = named("heal", "put it back");
  CLI::App* rate_verb = named("rate", "give a host's link another rate, also while something runs");
  CLI::App* exec_verb = named("exec", "run a command on a host");
  for (CLI::App* verb : {cut_verb, heal_verb, rate_verb, exec_verb}) {
    verb->add_option("host", options->host, "its name or number")->required();
  }
  rate_verb->add_option("rate", options->rate, "each way, or from the host where rate_down follows: 40mbit")->required();
  rate_verb->add_option("rate_down", options->rate_down, "to the host");
  accept_command(*exec_verb);

  return [=](const Words& after_dashes) {
    if (up_verb->parsed()) return up(*options);
    if (down_verb->parsed()) return down(*options);
    if (list_verb->parsed()) return list(*options);
    if (cut_verb->parsed()) return cut(*options);
    if (heal_verb->parsed()) return heal(*options);
    if (rate_verb->parsed()) return rate(*options);
    const Lab lab = find_lab(options->name);
    become(trailing_command(*exec_verb, after_dashes), {}, find_host(lab, options->host).space());
  };
}

}  // namespace shoal::app
