#include "shoal/topo/switch_tree.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "shoal/topo/fair_shares.h"

namespace shoal::topo {
namespace {

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

SwitchTree::SwitchTree(const std::vector<double>& up, const std::vector<double>& down)
    : hosts_(static_cast<std::uint32_t>(up.size())) {
  for (std::uint32_t host = 0; host < hosts_; ++host) nodes_.push_back({hosts_, up[host], down[host], 0});
  nodes_.push_back({hosts_, 0, 0, 0});
}

std::uint32_t SwitchTree::gather(std::span<const std::uint32_t> hosts, std::uint32_t parent, double up, double down) {
  const auto made = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent, up, down, 0});
  for (const std::uint32_t host : hosts) nodes_[host].parent = made;
  return made;
}

std::vector<std::uint32_t> SwitchTree::way_up(std::uint32_t node) const {
  std::vector<std::uint32_t> way;
  for (; node != root(); node = nodes_[node].parent) way.push_back(node);
  return way;
}

std::vector<double> SwitchTree::rates(std::span<const Flow> flows) const {
  FairShares shares;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {  // link 2 n goes up from node n, 2 n + 1 down to it; the root's are nobody's
    for (const double rate : {nodes_[node].up, nodes_[node].down}) shares.add_link(node == root() ? 1 : rate);
  }
  for (const Flow& flow : flows) {
    auto from = way_up(flow.from), to = way_up(flow.to);
    while (!from.empty() && !to.empty() && from.back() == to.back()) {
      from.pop_back();
      to.pop_back();
    }
    std::vector<std::uint32_t> path;
    for (const std::uint32_t node : from) path.push_back(2 * node);
    for (const std::uint32_t node : to) path.push_back(2 * node + 1);
    shares.add_flow(path);
  }
  shares.solve();
  std::vector<double> rates;
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) rates.push_back(shares.rate(flow));
  return rates;
}

void SwitchTree::fit_latencies(const std::function<double(std::uint32_t, std::uint32_t)>& latency) {
  std::vector<std::vector<std::uint32_t>> children(nodes_.size()), below(nodes_.size());
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (node != root()) children[nodes_[node].parent].push_back(node);
  }
  std::vector<double> distance(hosts_);  // of a host from the switch that is being looked at, excluding that switch's own link
  // Switches were made from the root downwards: backwards is from the leaves upwards.
  for (auto at = static_cast<std::uint32_t>(nodes_.size()); at-- > hosts_;) {
    const auto& siblings = children[at];
    const auto apart = [&](std::uint32_t a, std::uint32_t b) {  // of two children, without what lies below them
      std::vector<double> values;
      const auto hosts_of = [&](std::uint32_t node) { return node < hosts_ ? std::vector{node} : below[node]; };
      for (const std::uint32_t i : hosts_of(a)) {
        for (const std::uint32_t j : hosts_of(b)) values.push_back(latency(i, j) - distance[i] - distance[j]);
      }
      return median(std::move(values)).value_or(0);
    };
    std::vector<double> own(siblings.size());
    std::vector<double> between(siblings.size() * siblings.size());
    for (std::size_t a = 0; a < siblings.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b)
        between[a * siblings.size() + b] = between[b * siblings.size() + a] = apart(siblings[a], siblings[b]);
    }
    const auto three = [&](std::size_t a, std::size_t b, std::size_t c) {
      return (between[a * siblings.size() + b] + between[a * siblings.size() + c] - between[b * siblings.size() + c]) / 2;
    };
    for (std::size_t a = 0; a < siblings.size(); ++a) {
      std::vector<double> values;
      for (std::size_t b = 0; b < siblings.size(); ++b) {
        for (std::size_t c = 0; c < b; ++c) {
          if (a != b && a != c) values.push_back(three(a, b, c));
        }
      }
      if (values.empty() && siblings.size() == 2) values.push_back(between[1] / 2);
      own[a] = std::max(median(std::move(values)).value_or(0), 0.0);
    }
    for (std::size_t a = 0; a < siblings.size(); ++a) {
      const std::uint32_t node = siblings[a];
      nodes_[node].latency = own[a];
      if (node < hosts_) below[node] = {node};
      for (const std::uint32_t host : below[node]) distance[host] += own[a];
      below[at].insert(below[at].end(), below[node].begin(), below[node].end());
    }
  }
}

Topology SwitchTree::to_topology(const std::vector<std::string>& hosts) const {
  Topology topology;
  topology.hosts = hosts;
  const auto free_name = [&](std::string name) {
    while (std::find(hosts.begin(), hosts.end(), name) != hosts.end()) name += "'";
    return name;
  };
  const bool alone = nodes_.size() == hosts_ + 1;
  for (std::uint32_t node = hosts_; node < nodes_.size(); ++node) {
    topology.switches.push_back(free_name(node > hosts_ ? fmt::format("t_{}", node - hosts_ - 1) : alone ? "s" : "core"));
  }
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (node == root()) continue;
    const Nanoseconds latency(std::llround(nodes_[node].latency * 1e9));
    topology.links.push_back({node, nodes_[node].parent, nodes_[node].up, latency});
    topology.links.push_back({nodes_[node].parent, node, nodes_[node].down, latency});
  }
  return topology;
}

}  // namespace shoal::topo
