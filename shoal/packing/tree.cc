#include "shoal/packing/tree.h"

#include <algorithm>
#include <map>

namespace shoal::packing {

namespace {

void add(std::map<std::uint32_t, std::uint32_t>& times, const Network& network, const std::vector<Hop>& hops) {
  for (const Hop& hop : hops) along(network, hop, [&](std::uint32_t arc) { ++times[arc]; });
}

struct Neighbour {
  Node host;
  std::uint32_t edge;
};
using Neighbours = std::vector<std::vector<Neighbour>>;

// Hosts in the order in which they are found from `root`, each with the edge by which.
std::vector<Neighbour> walk(const Neighbours& neighbours, Node root) {
  std::vector<Neighbour> order{{root, 0}};
  std::vector<bool> seen(neighbours.size(), false);
  seen[root] = true;
  for (std::size_t k = 0; k < order.size(); ++k) {
    for (const Neighbour& next : neighbours[order[k].host]) {
      if (!seen[next.host]) seen[next.host] = true, order.push_back(next);
    }
  }
  return order;
}

// Halfway along the longest way.
Node centre(const Neighbours& neighbours, const std::vector<Hop>& edges) {
  const Node end = walk(neighbours, 0).back().host;
  const std::vector<Neighbour> order = walk(neighbours, end);
  std::vector<Node> from(neighbours.size(), end);
  std::vector<std::uint32_t> depth(neighbours.size(), 0);
  for (std::size_t k = 1; k < order.size(); ++k) {
    const Hop& edge = edges[order[k].edge];
    from[order[k].host] = edge.from == order[k].host ? edge.to : edge.from;
    depth[order[k].host] = depth[from[order[k].host]] + 1;
  }
  Node at = order.back().host;
  for (std::uint32_t steps = depth[at] / 2; steps > 0; --steps) at = from[at];
  return at;
}

}  // namespace

const char* name(Demand demand) {
  switch (demand) {
    case Demand::all_reduce: return "all_reduce";
    case Demand::broadcast: return "broadcast";
    case Demand::reduce: return "reduce";
    case Demand::all_gather: return "all_gather";
    case Demand::reduce_scatter: return "reduce_scatter";
  }
  return "?";
}

bool goes_up(Demand demand) {
  return demand == Demand::all_reduce || demand == Demand::reduce || demand == Demand::reduce_scatter;
}
bool goes_down(Demand demand) {
  return demand == Demand::all_reduce || demand == Demand::broadcast || demand == Demand::all_gather;
}

Load load(const Network& network, const Tree& tree) {
  std::map<std::uint32_t, std::uint32_t> times;
  add(times, network, tree.up);
  add(times, network, tree.down);
  return {times.begin(), times.end()};
}

std::uint32_t height(const Tree& tree) {
  std::map<Node, std::uint32_t> depth;
  std::uint32_t most = 0;
  for (const Hop& hop : tree.down) most = std::max(most, depth[hop.to] = depth[hop.from] + 1);
  depth.clear();
  for (auto hop = tree.up.rbegin(); hop != tree.up.rend(); ++hop) most = std::max(most, depth[hop->from] = depth[hop->to] + 1);
  return most;
}

std::vector<Hop> in_order(const std::vector<Hop>& of_hosts, Node root, bool up) {
  std::vector<std::vector<Node>> children(of_hosts.size());
  for (Node host = 0; host < of_hosts.size(); ++host) {
    if (host != root) children[up ? of_hosts[host].to : of_hosts[host].from].push_back(host);
  }
  std::vector<Hop> order;
  std::vector<Node> open{root};
  for (std::size_t k = 0; k < open.size(); ++k) {
    for (const Node child : children[open[k]]) order.push_back(of_hosts[child]), open.push_back(child);
  }
  if (up) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<Hop> turned(const std::vector<Hop>& out) {
  std::vector<Hop> in;
  for (auto hop = out.rbegin(); hop != out.rend(); ++hop) in.push_back({hop->to, hop->from, {hop->via.rbegin(), hop->via.rend()}});
  return in;
}

Tree centred(std::uint32_t hosts, const std::vector<Hop>& edges) {
  Neighbours neighbours(hosts);
  for (std::uint32_t e = 0; e < edges.size(); ++e) {
    neighbours[edges[e].from].push_back({edges[e].to, e});
    neighbours[edges[e].to].push_back({edges[e].from, e});
  }
  Tree tree;
  tree.root = centre(neighbours, edges);
  for (const Neighbour& next : walk(neighbours, tree.root)) {
    if (next.host == tree.root) continue;
    const Hop& edge = edges[next.edge];
    if (edge.to == next.host) tree.down.push_back(edge);
    else tree.down.push_back({edge.to, edge.from, {edge.via.rbegin(), edge.via.rend()}});
  }
  tree.up = turned(tree.down);
  return tree;
}

}  // namespace shoal::packing
