#include "shoal/packing/cheapest.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "shoal/packing/arborescence.h"
#include "shoal/topo/sets.h"

namespace shoal::packing {

namespace {

constexpr double kNoCost = std::numeric_limits<double>::infinity();

struct Reached {                       // by a search along cheapest ways
  double cost = kNoCost;
  std::uint32_t by = kNoArc;           // the last arc of the way
  Node base = 0;                       // the host where it begins
};

// From every host of `bases` along cheapest ways (Dijkstra). Hosts that are reached are not passed.
std::vector<Reached> search(const Network& network, std::span<const double> prices, std::span<const Node> bases) {
  std::vector<Reached> reached(network.nodes());
  using Entry = std::pair<double, Node>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  for (const Node base : bases) {
    reached[base] = {0, kNoArc, base};
    open.emplace(0, base);
  }
  while (!open.empty()) {
    const auto [cost, at] = open.top();
    open.pop();
    if (cost > reached[at].cost || (network.is_host(at) && reached[at].by != kNoArc)) continue;
    for (std::uint32_t a = network.first(at); a < network.first(at) + network.from(at).size(); ++a) {
      const Arc& arc = network.arcs()[a];
      const double there = cost + prices[a];
      if (there >= reached[arc.to].cost) continue;
      reached[arc.to] = {there, a, reached[at].base};
      open.emplace(there, arc.to);
    }
  }
  return reached;
}

// The switches between the base and `to`, the last first, and the base.
Node follow(const Network& network, const std::vector<Reached>& reached, Node to, std::vector<Node>& via) {
  Node at = to;
  while (reached[at].by != kNoArc) {
    at = network.arcs()[reached[at].by].from;
    if (!network.is_host(at)) via.push_back(at);
  }
  return at;
}

}  // namespace

// Cheapest ways from each host to each that it reaches through switches alone; or the network's routes between all.
struct CheapestTrees::Ways {
  std::vector<std::vector<Reached>> from;   // [host]; empty where routes are given
  std::vector<WeightedArc> out, in;         // between hosts; `in` turned round
};

std::vector<Origin> origins(const Network& network, Demand demand, Node root) {
  switch (demand) {
    case Demand::all_reduce: return {{std::nullopt, 1}};
    case Demand::broadcast: case Demand::reduce: return {{root, 1}};
    case Demand::all_gather: case Demand::reduce_scatter: break;
  }
  std::vector<Origin> all;
  for (Node host = 0; host < network.hosts(); ++host) all.push_back({host, 1.0 / network.hosts()});
  return all;
}

std::uint32_t origin_of(const std::vector<Origin>& origins, const Tree& tree) {
  const auto same = [&](const Origin& origin) { return !origin.root || *origin.root == tree.root; };
  return static_cast<std::uint32_t>(std::find_if(origins.begin(), origins.end(), same) - origins.begin());
}

bool mirrored(const Network& network, Demand demand) { return demand == Demand::all_reduce && network.symmetric(); }

CheapestTrees::CheapestTrees(const Network& network, Demand demand)
    : network_(network), demand_(demand), mirrored_(mirrored(network, demand)) {}
CheapestTrees::~CheapestTrees() = default;

void CheapestTrees::price(std::span<const double> prices) {
  prices_.assign(prices.begin(), prices.end());
  if (mirrored_) return;
  auto ways = std::make_unique<Ways>();
  for (Node host = 0; host < network_.hosts(); ++host) {
    if (network_.has_routes()) {
      for (Node to = 0; to < network_.hosts(); ++to) {
        if (to == host) continue;
        ways->out.push_back({host, to, along_route(host, to, prices_)});
        ways->in.push_back({to, host, ways->out.back().cost});
      }
      continue;
    }
    ways->from.push_back(search(network_, prices_, std::span(&host, 1)));
    for (Node to = 0; to < network_.hosts(); ++to) {
      const Reached& reached = ways->from[host][to];
      if (to == host || reached.by == kNoArc) continue;
      ways->out.push_back({host, to, reached.cost});
      ways->in.push_back({to, host, reached.cost});
    }
  }
  ways_ = std::move(ways);
}

double CheapestTrees::cost(const Tree& tree) const {
  double sum = 0;
  for (const auto& [arc, times] : load(network_, tree)) sum += times * prices_[arc];
  return sum;
}

Tree CheapestTrees::cheapest(const Origin& origin) const {
  if (mirrored_) return spanning_tree();
  if (origin.root) return arborescences(*origin.root);
  Tree best;
  double least = kNoCost;
  for (Node root = 0; root < network_.hosts(); ++root) {
    Tree tree = arborescences(root);
    if (const double sum = cost(tree); sum < least) least = sum, best = std::move(tree);
  }
  return best;
}

// Minimum spanning tree over cheapest ways, without making all of them: every switch belongs to its nearest host, and the ways
// that matter cross from one host's surroundings to another's (Mehlhorn, Information Processing Letters 27, 1988).
Tree CheapestTrees::spanning_tree() const {
  std::vector<double> both(prices_.size());
  for (std::uint32_t a = 0; a < both.size(); ++a) both[a] = prices_[a] + prices_[network_.arcs()[a].reverse];
  if (network_.has_routes()) return spanning_tree_along_routes(both);
  std::vector<Node> hosts(network_.hosts());
  std::iota(hosts.begin(), hosts.end(), 0);
  const std::vector<Reached> reached = search(network_, both, hosts);

  std::vector<std::pair<double, std::uint32_t>> crossings;
  for (std::uint32_t a = 0; a < both.size(); ++a) {
    const Arc& arc = network_.arcs()[a];
    if (arc.from < arc.to && reached[arc.from].base != reached[arc.to].base) {
      crossings.emplace_back(reached[arc.from].cost + both[a] + reached[arc.to].cost, a);
    }
  }
  std::sort(crossings.begin(), crossings.end());
  topo::Sets sets(network_.hosts());
  std::vector<Hop> edges;
  for (const auto& [cost, a] : crossings) {
    const Arc& arc = network_.arcs()[a];
    if (!sets.join(reached[arc.from].base, reached[arc.to].base)) continue;
    Hop hop;
    if (!network_.is_host(arc.from)) hop.via.push_back(arc.from);
    hop.from = follow(network_, reached, arc.from, hop.via);
    std::reverse(hop.via.begin(), hop.via.end());
    if (!network_.is_host(arc.to)) hop.via.push_back(arc.to);
    hop.to = follow(network_, reached, arc.to, hop.via);
    edges.push_back(std::move(hop));
  }
  return centred(network_.hosts(), edges);
}

// The same over all pairs' routes (Prim 1957).
Tree CheapestTrees::spanning_tree_along_routes(std::span<const double> prices) const {
  const std::uint32_t hosts = network_.hosts();
  std::vector<double> cost(hosts, kNoCost);
  std::vector<Node> from(hosts, 0);
  std::vector<bool> in(hosts, false);
  std::vector<Hop> edges;
  Node last = 0;
  for (std::uint32_t joined = 1; joined < hosts; ++joined) {
    in[last] = true;
    Node next = hosts;
    for (Node host = 0; host < hosts; ++host) {
      if (in[host]) continue;
      if (const double there = along_route(last, host, prices); there < cost[host]) cost[host] = there, from[host] = last;
      if (next == hosts || cost[host] < cost[next]) next = host;
    }
    edges.push_back({from[next], next, {}});
    last = next;
  }
  return centred(hosts, edges);
}

double CheapestTrees::along_route(Node from, Node to, std::span<const double> prices) const {
  double sum = 0;
  for (const std::uint32_t arc : network_.route(from, to)) sum += prices[arc];
  return sum;
}

Tree CheapestTrees::arborescences(Node root) const {
  const auto hops = [&](const std::vector<WeightedArc>& arcs, bool in) {
    const std::vector<std::uint32_t> entry = cheapest_arborescence(network_.hosts(), root, arcs);
    std::vector<Hop> of_hosts(network_.hosts());
    for (Node host = 0; host < network_.hosts(); ++host) {
      if (host == root) continue;
      const Node other = arcs[entry[host]].from;
      Hop& hop = of_hosts[host] = {in ? host : other, in ? other : host, {}};
      if (network_.has_routes()) continue;
      follow(network_, ways_->from[hop.from], hop.to, hop.via);
      std::reverse(hop.via.begin(), hop.via.end());
    }
    return in_order(of_hosts, root, in);
  };
  Tree tree;
  tree.root = root;
  if (goes_up(demand_)) tree.up = hops(ways_->in, true);
  if (goes_down(demand_)) tree.down = hops(ways_->out, false);
  return tree;
}

}  // namespace shoal::packing
