#include "shoal/topo/components.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/core/text.h"
#include "shoal/topo/sets.h"

namespace shoal::topo {

Components components(const Topology& topology) {
  Sets sets(topology.nodes());
  for (const Link& link : topology.links) sets.join(link.from, link.to);

  // Numbered by how many hosts they have.
  std::vector<Node> roots, hosts(topology.nodes());
  for (Node node = 0; node < topology.nodes(); ++node) {
    if (sets.find(node) == node) roots.push_back(node);
    if (node < topology.hosts.size()) ++hosts[sets.find(node)];
  }
  std::stable_sort(roots.begin(), roots.end(), [&](Node a, Node b) { return hosts[a] > hosts[b]; });
  std::vector<std::uint32_t> number(topology.nodes());
  for (std::uint32_t i = 0; i < roots.size(); ++i) number[roots[i]] = i;

  Components found;
  found.hosts.resize(roots.size());
  found.of.resize(topology.nodes());
  for (Node node = 0; node < topology.nodes(); ++node) {
    found.of[node] = number[sets.find(node)];
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
