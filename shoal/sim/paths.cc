#include "shoal/sim/paths.h"

namespace shoal::sim {
namespace {

// Nodes have 17 bits at most: one more says which of two ways.
std::uint64_t way_key(topo::Node from, topo::Node to, bool by_switches) {
  static_assert(topo::kMostNodes <= std::size_t{1} << 31);
  return std::uint64_t{by_switches} << 63 | std::uint64_t{from} << 32 | to;
}

}  // namespace

Paths::Paths(const topo::Topology& topology, const Costs& costs) : topology_(topology), costs_(costs), routes_(topology) {}

std::vector<double> Paths::capacities() const {
  std::vector<double> all;
  for (const topo::Link& link : topology_.links) all.push_back(link.rate * costs_.goodput);
  if (has_threads()) all.resize(all.size() + topology_.hosts.size(), thread_capacity(1));
  return all;
}

const Path& Paths::between(topo::Node from, topo::Node to, bool by_switches) {
  const auto [entry, is_new] = paths_.try_emplace(way_key(from, to, by_switches));
  Path& path = entry->second;
  if (!is_new) return path;
  path.links = routes_.path(from, to, by_switches);
  for (const std::uint32_t link : path.links) path.latency += Seconds(topology_.links[link].latency).count();
  if (has_threads()) {
    path.links.insert(path.links.begin(), thread(from));
    path.links.push_back(thread(to));
  }
  return path;
}

}  // namespace shoal::sim
