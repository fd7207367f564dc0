#include "shoal/collective/blink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "shoal/collective/build_trees.h"
#include "shoal/collective/certificate.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/three_phases.h"
#include "shoal/core/error.h"
#include "shoal/packing/blink.h"
#include "shoal/packing/channels.h"

namespace shoal::collective {

namespace {

using packing::Network;
using packing::Packing;

PackingTask checked_task(const topo::Topology& topology, Collective collective, std::uint32_t root) {
  PackingTask task(topology, collective, root);
  task.check_searched(kBlink);
  return task;
}

bool leads_everywhere(const topo::Topology& topology) {
  try {
    const Network network(topology);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) throw;
    return false;
  }
}

// One kind of links by itself.
topo::Topology kind_of(topo::Topology topology, bool by_switches) {
  const auto hosts = static_cast<topo::Node>(topology.hosts.size());
  std::erase_if(topology.links,
                [&](const topo::Link& link) { return (link.from >= hosts || link.to >= hosts) != by_switches; });
  return topology;
}

// Until when the last byte of a kind's first slice has gone its longest way.
double begins(const topo::Topology& kind, const Packing& packing, bool by_switches) {
  if (kind.relative) return 0;
  Nanoseconds longest{};
  for (const topo::Link& link : kind.links) longest = std::max(longest, link.latency);
  std::size_t hops = 0;
  for (const packing::Tree& tree : packing.trees) hops = std::max<std::size_t>(hops, packing::height(tree));
  const double passes = (by_switches ? 2.0 : 1.0) * (packing.demand == packing::Demand::all_reduce ? 2 : 1);
  return passes * static_cast<double>(hops) * Seconds(longest).count();
}

}  // namespace

Program blink_program(const topo::Topology& topology, Collective collective, std::uint32_t root) {
  const PackingTask task = checked_task(topology, collective, root);
  if (task.ranks == 1) return tree_program(kBlink, collective, 1, {});
  const Packing packing = packing::pack_blink(task.network, task.demand, root);
  Program program =
      tree_program(kBlink, collective, task.ranks, data_trees(packing.trees, task.ranks, rate_of(packing.trees)), root);
  if (collective == Collective::all_reduce && are_shared(servers_in(topology))) {
    // Three phases have fewer hops, and are taken where they cost no more of the rate than few trees may.
    Program phased = tree_program("blink_servers", collective, task.ranks, three_phases(topology));
    if (congestion(phased, topology).rate >= (1 - packing::Blink{}.loss) * congestion(program, topology).rate)
      program = std::move(phased);
  }
  program.certificate = certificate(program, topology, task.best());  // Blink's own prices prove its bound to 1 - eps only
  return program;
}

std::optional<Program> blink_hybrid(const topo::Topology& topology, Collective collective, std::uint32_t root, double bytes) {
  const PackingTask task = checked_task(topology, collective, root);
  std::vector<Packing> packings;
  std::vector<packing::Channel> kinds;
  for (const bool by_switches : {false, true}) {
    const topo::Topology kind = kind_of(topology, by_switches);
    if (kind.links.empty() || !leads_everywhere(kind)) return std::nullopt;
    packings.push_back(packing::pack_blink(Network(kind), task.demand, root));
    kinds.push_back({packings.back().rate, begins(kind, packings.back(), by_switches)});
  }
  const packing::Split split = packing::split(bytes, kinds);
  std::vector<DataTree> trees;
  std::vector<bool> by_switches;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (split.data[kind] <= 0) return std::nullopt;
    for (DataTree& tree : data_trees(packings[kind].trees, task.ranks, packings[kind].rate * bytes / split.data[kind])) {
      trees.push_back(std::move(tree));
      by_switches.push_back(kind == 1);
    }
  }
  Program program = tree_program("blink_hybrid", collective, task.ranks, trees, root);
  program.by_switches = std::move(by_switches);
  program.certificate = certificate(program, topology, task.best());
  return program;
}

}  // namespace shoal::collective
