#include "shoal/packing/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "shoal/core/error.h"

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
  std::sort(arcs_.begin(), arcs_.end(), [](const Arc& a, const Arc& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  for (const Arc& arc : arcs_) ++first_[arc.from + 1];
  for (std::size_t node = 0; node + 1 < first_.size(); ++node) first_[node + 1] += first_[node];
  for (Arc& arc : arcs_) {
    arc.reverse = this->arc(arc.to, arc.from);
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
