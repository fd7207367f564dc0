#include "shoal/sim/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace shoal::sim {
namespace {

using nlohmann::ordered_json;

// What has no end is null.
ordered_json faults_as_json(const Scenario& scenario, const Outcome& outcome) {
  const auto when = [](double seconds) { return std::isfinite(seconds) ? ordered_json(seconds) : ordered_json(); };
  ordered_json all = ordered_json::array();
  for (std::size_t i = 0; i < outcome.faults.size(); ++i) {
    const FaultOutcome& became = outcome.faults[i];
    ordered_json lost = ordered_json::array();
    for (const topo::Node host : became.lost) lost.push_back(scenario.topology.hosts[host]);
    all.push_back({{"name", scenario.fault_names[i]},
                   {"at", scenario.faults.list[i].at},
                   {"lost", std::move(lost)},
                   {"agreed", when(became.agreed)},
                   {"resumed", when(became.resumed)},
                   {"again", became.again},
                   {"undone", became.undone}});
  }
  return all;
}

}  // namespace

Simulated simulate(const Scenario& scenario, bool trace) {
  const auto with = [&](bool traced, const Faults& faults) {
    return simulate(scenario.topology, scenario.jobs, scenario.flows, scenario.costs, traced, faults);
  };
  Simulated simulated{with(trace, scenario.faults)};
  simulated.undisturbed =
      scenario.faults.list.empty() ? simulated.outcome.seconds : with(false, {scenario.faults.recovery, {}}).seconds;
  return simulated;
}

Span span_of(const Scenario::Group& group, const Outcome& outcome) {
  Span span;
  for (std::uint32_t job = group.first; job < group.first + group.jobs; ++job) {
    span.begin = std::min(span.begin, outcome.jobs[job].begin);
    span.end = std::max(span.end, outcome.jobs[job].end);
  }
  return group.jobs == 0 ? Span{0, 0} : span;
}

std::string to_json(const Scenario& scenario, const Simulated& simulated) {
  const Outcome& outcome = simulated.outcome;
  const topo::Topology& topology = scenario.topology;
  ordered_json json{{"name", scenario.name}, {"seconds", outcome.seconds}, {"flows_simulated", outcome.flows}};
  json["runs"] = ordered_json::array();
  for (const Scenario::Group& group : scenario.groups) {
    const auto [begin, end] = span_of(group, outcome);
    ordered_json entry{
        {"name", group.name}, {"begin", begin}, {"end", end}, {"repeats", group.repeats}, {"bytes", group.bytes}};
    entry["jobs"] = ordered_json::array();
    for (std::uint32_t job = group.first; job < group.first + group.jobs; ++job) {
      ordered_json told{{"name", scenario.jobs[job].name}, {"begin", outcome.jobs[job].begin}, {"end", outcome.jobs[job].end}};
      told["finished"] = outcome.jobs[job].finished;
      entry["jobs"].push_back(std::move(told));
    }
    json["runs"].push_back(std::move(entry));
  }
  json["flows"] = ordered_json::array();
  for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
    const double arrived = outcome.transfers[i];
    json["flows"].push_back(
        {{"name", scenario.flow_names[i]}, {"arrived", std::isfinite(arrived) ? ordered_json(arrived) : ordered_json()}});
  }
  if (!outcome.faults.empty()) {
    json["faults"] = faults_as_json(scenario, outcome);
    json["seconds_without_faults"] = simulated.undisturbed;
  }
  json["links"] = ordered_json::array();
  for (std::size_t at = 0; at < topology.links.size(); ++at) {
    const topo::Link& link = topology.links[at];
    json["links"].push_back({{"from", topology.node_name(link.from)},
                             {"to", topology.node_name(link.to)},
                             {"bytes", outcome.links[at].bytes},
                             {"busy", outcome.links[at].busy}});
  }
  if (!topology.links.empty()) json["bottleneck"] = outcome.bottleneck;
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace shoal::sim
