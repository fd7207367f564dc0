#include "shoal/collective/three_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/packing/blink.h"
#include "shoal/topo/facts.h"

namespace shoal::collective {

namespace {

using NodePair = std::pair<topo::Node, topo::Node>;

constexpr std::uint32_t kMostTurns = 8;        // parts, at least where a server has so many hosts, so that roots take turns
constexpr double kSameCut = 1e-6;              // of the data: cuts nearer than this are one

std::set<NodePair> cuts(const topo::Topology& topology) {
  std::set<NodePair> cut;
  for (const topo::Neck& neck : topo::facts(topology).necks) {
    cut.emplace(neck.inner, neck.outer);
    cut.emplace(neck.outer, neck.inner);
  }
  return cut;
}

// Nodes that a walk from these reaches along links that are not cut, through hosts only where `passes` allows.
template <typename Passes>
std::vector<bool> reached(const topo::Topology& topology, const std::vector<topo::Node>& from, const std::set<NodePair>& cut,
                          Passes passes) {
  std::vector<bool> seen(topology.nodes(), false);
  std::vector<topo::Node> open = from;
  for (const topo::Node node : from) seen[node] = true;
  while (!open.empty()) {
    const topo::Node at = open.back();
    open.pop_back();
    for (const topo::Link& link : topology.links) {
      if ((link.from != at && link.to != at) || cut.contains({link.from, link.to})) continue;
      const topo::Node next = link.from == at ? link.to : link.from;
      if (seen[next] || !passes(next)) continue;
      seen[next] = true;
      open.push_back(next);
    }
  }
  return seen;
}

// One server by itself: its hosts are numbered in the order of their ranks.
topo::Topology inside(const topo::Topology& topology, const std::vector<std::uint32_t>& ranks, const std::set<NodePair>& cut) {
  const auto hosts = static_cast<topo::Node>(topology.hosts.size());
  const std::set<topo::Node> own(ranks.begin(), ranks.end());
  const std::vector<bool> here =
      reached(topology, ranks, cut, [&](topo::Node node) { return node >= hosts || own.contains(node); });
  topo::Topology made;
  made.name = topology.name;
  made.relative = topology.relative;
  std::map<topo::Node, topo::Node> number;
  for (topo::Node node = 0; node < topology.nodes(); ++node) {
    if (!here[node]) continue;
    number.emplace(node, static_cast<topo::Node>(number.size()));
    (node < hosts ? made.hosts : made.switches).push_back(topology.node_name(node));
  }
  for (const topo::Link& link : topology.links) {
    if (here[link.from] && here[link.to] && !cut.contains({link.from, link.to})) {
      made.links.push_back({number.at(link.from), number.at(link.to), link.rate, link.latency});
    }
  }
  return made;
}

DataTree with_root(const DataTree& tree, std::uint32_t root) {
  DataTree made = tree;
  made.root = root;
  for (std::uint32_t at = root, below = root; below != tree.root; below = at) {  // the way to the old root turns round
    at = tree.up[below];
    made.up[at] = made.down[at] = below;
  }
  return made;
}

struct Server {
  std::vector<std::uint32_t> ranks;
  std::vector<DataTree> trees;       // over its hosts, numbered as `ranks` are
  std::vector<double> until;         // [tree]: of the data, where its part ends
  bool symmetric = true;

  const DataTree& at(double point) const {
    const auto behind = static_cast<std::size_t>(std::ranges::upper_bound(until, point) - until.begin());
    return trees[std::min(behind, trees.size() - 1)];
  }
};

Server server_of(const topo::Topology& topology, std::vector<std::uint32_t> ranks, const std::set<NodePair>& cut) {
  Server server;
  server.ranks = std::move(ranks);
  const auto size = static_cast<std::uint32_t>(server.ranks.size());
  if (size == 1) {
    server.trees.push_back({0, {0}, {0}});
    server.until.push_back(1);
    return server;
  }
  const packing::Network network(inside(topology, server.ranks, cut));
  server.symmetric = network.symmetric();
  const packing::Packing packing = packing::pack_blink(network, packing::Demand::all_reduce);
  double before = 0;
  for (const packing::Tree& packed : packing.trees) {
    server.trees.push_back(tree_of(packed, size));
    server.until.push_back((before += packed.rate) / packing.rate);
    server.symmetric = server.symmetric && server.trees.back().up == server.trees.back().down;
  }
  return server;
}

}  // namespace

Hosts servers_in(const topo::Topology& topology) {
  const std::set<NodePair> cut = cuts(topology);
  const auto hosts = static_cast<topo::Node>(topology.hosts.size());
  Hosts server(hosts, hosts);
  std::uint32_t count = 0;
  for (topo::Node host = 0; host < hosts; ++host) {
    if (server[host] != hosts) continue;
    const std::vector<bool> together = reached(topology, {host}, cut, [](topo::Node) { return true; });
    for (topo::Node other = host; other < hosts; ++other) {
      if (together[other]) server[other] = count;
    }
    ++count;
  }
  return count > 1 ? server : hosts_in(topology);
}

std::vector<DataTree> three_phases(const topo::Topology& topology) {
  const Hosts server_of_rank = servers_in(topology);
  if (!are_shared(server_of_rank))
    throw Error(Code::invalid_argument, "has no several servers of several hosts", "topology " + topology.name);
  const auto ranks = static_cast<std::uint32_t>(server_of_rank.size());
  const std::set<NodePair> cut = cuts(topology);
  std::vector<Server> servers;
  std::vector<double> ends{1};
  std::size_t largest = 0;
  for (auto& members : members_by_host(server_of_rank)) {
    servers.push_back(server_of(topology, std::move(members), cut));
    largest = std::max(largest, servers.back().ranks.size());
    ends.insert(ends.end(), servers.back().until.begin(), servers.back().until.end());
  }
  std::ranges::sort(ends);
  std::vector<double> parts{0};  // their ends, behind the beginning
  for (const double end : ends) {
    if (end - parts.back() > kSameCut) parts.push_back(std::min(end, 1.0));
  }
  const std::size_t turns = std::max<std::size_t>(1, std::min<std::size_t>(largest, kMostTurns) / (parts.size() - 1));

  std::vector<DataTree> trees;
  std::uint32_t number = 0;
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const double size = (parts[part] - parts[part - 1]) / static_cast<double>(turns * servers.size());
    for (std::size_t turn = 0; turn < turns; ++turn, ++number) {
      std::vector<DataTree> local;
      for (const Server& server : servers) {
        const DataTree& tree = server.at((parts[part] + parts[part - 1]) / 2);
        local.push_back(server.symmetric ? with_root(tree, number % server.ranks.size()) : tree);
      }
      for (std::size_t home = 0; home < servers.size(); ++home) {
        DataTree tree;
        tree.root = servers[home].ranks[local[home].root];
        tree.up.assign(ranks, tree.root);
        tree.down = tree.up;
        for (std::size_t s = 0; s < servers.size(); ++s) {
          for (std::uint32_t k = 0; k < servers[s].ranks.size(); ++k) {
            if (k == local[s].root) continue;
            tree.up[servers[s].ranks[k]] = servers[s].ranks[local[s].up[k]];
            tree.down[servers[s].ranks[k]] = servers[s].ranks[local[s].down[k]];
          }
        }
        tree.share = share_of(size);
        trees.push_back(std::move(tree));
      }
    }
  }
  return trees;
}

}  // namespace shoal::collective
