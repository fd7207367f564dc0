// shoal sim SCENARIO.toml: what a network would make of programs, plans, tables and other traffic (docs/simulation.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "shoal/core/aside.h"
#include "shoal/core/text.h"
#include "shoal/sim/report.h"

namespace shoal::app {
namespace {

using nlohmann::ordered_json;

struct SimOptions {
  std::string file, trace;
  bool json = false;
};

std::vector<std::uint32_t> by_use(const sim::Outcome& outcome) {
  std::vector<std::uint32_t> links(outcome.links.size());
  for (std::uint32_t link = 0; link < links.size(); ++link) links[link] = link;
  std::ranges::stable_sort(links, std::greater<>(), [&](std::uint32_t link) { return outcome.links[link].busy; });
  return links;
}

std::string names_of(const std::vector<topo::Node>& hosts, const topo::Topology& topology) {
  std::string names;
  for (const topo::Node host : hosts) names += (names.empty() ? "" : ", ") + topology.hosts[host];
  return names;
}

// What became of the faults, and what they cost beside `undisturbed`, the same scenario without them.
std::string faults_as_text(const sim::Scenario& scenario, const sim::Outcome& outcome, double undisturbed) {
  std::string text;
  for (std::size_t i = 0; i < outcome.faults.size(); ++i) {
    const sim::Fault& fault = scenario.faults.list[i];
    const sim::FaultOutcome& became = outcome.faults[i];
    text += fmt::format("  {} at {}: ", scenario.fault_names[i], show_seconds(fault.at));
    if (fault.at > outcome.seconds) {
      text += "all had ended\n";
    } else if (!sim::loses(fault)) {
      text += fault.kind == sim::Fault::Kind::slow_link ? "a link at " + show_rate(fault.rate) + "\n"
                                                        : fmt::format("{} takes {:g} times as long\n", scenario.topology.hosts[fault.host], fault.factor);
    } else if (became.lost.empty()) {
      text += "nobody is lost\n";
    } else {
      text += names_of(became.lost, scenario.topology) + " lost";
      if (std::isfinite(became.agreed)) text += fmt::format("; agreed {} later, {} begun again", show_seconds(became.agreed - fault.at), show_count(became.again, "operations"));
      if (became.again > 0) text += fmt::format(" ({} undone)", show_seconds(became.undone));
      if (std::isfinite(became.resumed)) text += fmt::format("; on after {}", show_seconds(became.resumed - fault.at));
      text += "\n";
    }
  }
  const double cost = outcome.seconds - undisturbed;  // fewer members may need less
  if (!outcome.faults.empty()) text += fmt::format("  without faults: {}, which is {} {}\n", show_seconds(undisturbed), show_seconds(std::abs(cost)), cost < 0 ? "more" : "less");
  return text;
}

std::string as_text(const sim::Scenario& scenario, const sim::Outcome& outcome, double undisturbed) {
  constexpr std::size_t kMostLinks = 8;
  const topo::Topology& topology = scenario.topology;
  std::string text = fmt::format("{}: {} on {} and {}, {} simulated\n", scenario.name, show_seconds(outcome.seconds),
                                 show_count(topology.hosts.size(), "hosts"), show_count(topology.links.size(), "links"), show_count(outcome.flows, "flows"));
  for (const sim::Scenario::Group& group : scenario.groups) {
    const auto [begin, end] = sim::span_of(group, outcome);
    text += fmt::format("  {}: {} .. {}", group.name, show_seconds(begin), show_seconds(end));
    if (group.repeats > 1) text += fmt::format(", {} each of {}", show_seconds((end - begin) / group.repeats), group.repeats);
    text += fmt::format(", {} at {}\n", show_size(group.bytes), show_rate(end > begin ? group.bytes * group.repeats / (end - begin) : 0));
  }
  for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
    const bool arrived = std::isfinite(outcome.transfers[i]);
    text += fmt::format("  {}: {}\n", scenario.flow_names[i], arrived ? "arrived after " + show_seconds(outcome.transfers[i]) : "under way at the end");
  }
  text += faults_as_text(scenario, outcome, undisturbed);
  const auto links = by_use(outcome);
  for (std::size_t i = 0; i < std::min(links.size(), kMostLinks); ++i) {
    const topo::Link& link = topology.links[links[i]];
    const sim::LinkUse& use = outcome.links[links[i]];
    if (use.bytes <= 0) break;
    text += fmt::format("  {} ({}): busy {:.1f} %, {}\n", topology.link_name(link), show_rate(link.rate), 100 * use.busy, show_size(use.bytes));
  }
  return text;
}

// As chrome://tracing and Perfetto read it: a process a sender, a thread a receiver.
std::string as_trace(const sim::Scenario& scenario, const sim::Outcome& outcome) {
  const std::string state = "state";
  ordered_json events = ordered_json::array();
  for (topo::Node host = 0; host < scenario.topology.hosts.size(); ++host) {
    events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", host}, {"args", {{"name", "from " + scenario.topology.hosts[host]}}}});
  }
  for (const sim::Sent& sent : outcome.trace) {
    const std::string& name = sent.job == sim::Sent::kState ? state : scenario.jobs[sent.job].name;
    events.push_back({{"ph", "X"}, {"name", name}, {"pid", sent.from}, {"tid", sent.to}, {"ts", sent.begin * 1e6},
                      {"dur", (sent.end - sent.begin) * 1e6}, {"args", {{"to", scenario.topology.hosts[sent.to]}, {"bytes", sent.bytes}}}});
  }
  return ordered_json{{"traceEvents", std::move(events)}}.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

int simulate(const SimOptions& options) {
  const sim::Scenario scenario = sim::read_scenario(options.file);
  const sim::Simulated simulated = sim::simulate(scenario, !options.trace.empty());
  if (!options.trace.empty()) write_aside(options.trace, as_trace(scenario, simulated.outcome));
  const std::string text = options.json ? sim::to_json(scenario, simulated) : as_text(scenario, simulated.outcome, simulated.undisturbed);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

Action declare_sim(CLI::App& app) {
  const auto options = std::make_shared<SimOptions>();
  app.add_option("scenario", options->file, "TOML file: a network and what happens on it (docs/simulation.md)")->required();
  switch_on(app, "--json", options->json, "all figures as JSON: runs, flows, every link");
  flag(app, "--trace", options->trace, "write every simulated transfer into this file, for chrome://tracing or Perfetto");
  return [options](const Words&) { return simulate(*options); };
}

}  // namespace shoal::app
