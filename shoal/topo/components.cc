#include "shoal/topo/components.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/core/text.h"

namespace shoal::topo {

Components components(const Topology& topology) {
  // Union by path halving; then roots are numbered by how many hosts they have.
  std::vector<Node> parent(topology.nodes());
  std::iota(parent.begin(), parent.end(), Node{0});
  const auto root = [&](Node node) {
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
  };
  for (const Link& link : topology.links) {
    const Node from = root(link.from), to = root(link.to);
    parent[std::max(from, to)] = std::min(from, to);
  }

  std::vector<Node> roots, hosts(topology.nodes());
  for (Node node = 0; node < parent.size(); ++node) {
    if (root(node) == node) roots.push_back(node);
    if (node < topology.hosts.size()) ++hosts[root(node)];
  }
  std::stable_sort(roots.begin(), roots.end(), [&](Node a, Node b) { return hosts[a] > hosts[b]; });
  std::vector<std::uint32_t> number(topology.nodes());
  for (std::uint32_t i = 0; i < roots.size(); ++i) number[roots[i]] = i;

  Components found;
  found.hosts.resize(roots.size());
  found.of.resize(topology.nodes());
  for (Node node = 0; node < parent.size(); ++node) {
    found.of[node] = number[root(node)];
    if (node < topology.hosts.size()) found.hosts[found.of[node]].push_back(node);
  }
  return found;
}

std::string describe(const Components& components, const Topology& topology) {
  constexpr std::size_t kMostParts = 4, kMostNames = 3;
  std::vector<std::string> parts;
  for (const auto& hosts : components.hosts) {
    if (parts.size() == kMostParts) {
      parts.emplace_back("...");
      break;
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(hosts.size(), kMostNames); ++i) names.push_back(topology.hosts[hosts[i]]);
    if (hosts.size() > kMostNames) names.emplace_back("...");
    parts.push_back(show_count(hosts.size(), "hosts") + (names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", "))));
  }
  return fmt::format("{}: {}", show_count(components.hosts.size(), "components"), fmt::join(parts, ", "));
}

}  // namespace shoal::topo
