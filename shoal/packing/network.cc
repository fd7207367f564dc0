#include "shoal/packing/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/topo/routes.h"

namespace shoal::packing {

namespace {

std::vector<Arc> merged(const topo::Topology& topology) {
  std::map<std::pair<Node, Node>, double> rates;
  for (const topo::Link& link : topology.links) rates[{link.from, link.to}] += link.rate;
  std::vector<Arc> arcs;
  for (const auto& [ends, rate] : rates) arcs.push_back({ends.first, ends.second, rate, kNoArc});
  return arcs;
}

// The first host that cannot be reached from host 0, or hosts() if there is none.
Node unreached(const Network& network) {
  std::vector<bool> seen(network.nodes(), false);
  std::vector<Node> open{0};
  seen[0] = true;
  while (!open.empty()) {
    const Node at = open.back();
    open.pop_back();
    for (const Arc& arc : network.from(at)) {
      if (!seen[arc.to]) seen[arc.to] = true, open.push_back(arc.to);
    }
  }
  Node host = 0;
  while (host < network.hosts() && seen[host]) ++host;
  return host;
}

}  // namespace

Network::Network(std::uint32_t hosts, std::uint32_t nodes, std::vector<Arc> arcs)
    : hosts_(hosts), arcs_(std::move(arcs)), first_(nodes + 1, 0) {
  std::stable_sort(arcs_.begin(), arcs_.end(), [](const Arc& a, const Arc& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  for (const Arc& arc : arcs_) ++first_[arc.from + 1];
  for (std::size_t node = 0; node + 1 < first_.size(); ++node) first_[node + 1] += first_[node];
  for (std::uint32_t a = 0; a < arcs_.size(); ++a) {  // of parallel arcs the k-th belongs to the k-th of those the other way
    Arc& arc = arcs_[a];
    if (const std::uint32_t back = this->arc(arc.to, arc.from); back != kNoArc) {
      const std::uint32_t parallel = back + a - this->arc(arc.from, arc.to);
      if (parallel < arcs_.size() && arcs_[parallel].from == arc.to && arcs_[parallel].to == arc.from) arc.reverse = parallel;
    }
    if (arc.reverse == kNoArc || arcs_[arc.reverse].rate != arc.rate) symmetric_ = false;
  }
}

Network::Network(const topo::Topology& topology)
    : Network(static_cast<std::uint32_t>(topology.hosts.size()), static_cast<std::uint32_t>(topology.nodes()), merged(topology)) {
  const auto refuse = [&](const std::string& what) { throw Error(Code::invalid_argument, what, "topology " + topology.name); };
  if (hosts_ == 0) refuse("there is no host");
  if (const Node host = unreached(*this); host < hosts_) {
    refuse(fmt::format("nothing leads from {} to {}", topology.hosts[0], topology.hosts[host]));
  }
  if (const Node host = unreached(turned()); host < hosts_) {
    refuse(fmt::format("nothing leads from {} to {}", topology.hosts[host], topology.hosts[0]));
  }
}

Network Network::along_routes(const topo::Topology& topology) {
  std::vector<std::pair<Node, Node>> pairs;
  for (Node from = 0; from < topology.hosts.size(); ++from) {
    for (Node to = 0; to < topology.hosts.size(); ++to) {
      if (from != to) pairs.emplace_back(from, to);
    }
  }
  return along_routes(topology, pairs);
}

Network Network::along_routes(const topo::Topology& topology, const std::vector<std::pair<Node, Node>>& pairs) {
  std::vector<std::uint32_t> links(topology.links.size());  // in the order of arcs
  std::iota(links.begin(), links.end(), 0U);
  std::ranges::stable_sort(links, {}, [&](std::uint32_t link) { return std::pair(topology.links[link].from, topology.links[link].to); });
  std::vector<Arc> arcs;
  std::vector<std::uint32_t> arc_of(links.size());
  for (const std::uint32_t link : links) {
    arc_of[link] = static_cast<std::uint32_t>(arcs.size());
    arcs.push_back({topology.links[link].from, topology.links[link].to, topology.links[link].rate, kNoArc});
  }
  Network network(static_cast<std::uint32_t>(topology.hosts.size()), static_cast<std::uint32_t>(topology.nodes()), std::move(arcs));
  topo::Routes routes(topology);
  for (const auto& [from, to] : pairs) {
    std::vector<std::uint32_t>& route = network.routes_[pair(from, to)];
    route = routes.path(from, to);
    for (std::uint32_t& arc : route) arc = arc_of[arc];
  }
  const auto is_reverse = [&](std::uint32_t there, std::uint32_t back) { return network.arcs_[there].reverse == back; };
  for (const auto& [from, to] : pairs) {
    const auto back = network.routes_.find(pair(to, from));
    const auto there = network.route(from, to);
    const bool comes_back = back != network.routes_.end() && std::equal(there.begin(), there.end(), back->second.rbegin(), back->second.rend(), is_reverse);
    network.symmetric_ = network.symmetric_ && comes_back;
  }
  return network;
}

Network Network::turned() const {
  std::vector<Arc> arcs = arcs_;
  for (Arc& arc : arcs) std::swap(arc.from, arc.to);
  return Network(hosts_, nodes(), std::move(arcs));
}

std::uint32_t Network::arc(Node from, Node to) const {
  const auto range = this->from(from);
  const auto found = std::lower_bound(range.begin(), range.end(), to, [](const Arc& arc, Node node) { return arc.to < node; });
  return found != range.end() && found->to == to ? first_[from] + static_cast<std::uint32_t>(found - range.begin()) : kNoArc;
}

}  // namespace shoal::packing
