#include "shoal/topo/facts.h"

#include <algorithm>

#include <fmt/format.h>

#include "shoal/core/text.h"

namespace shoal::topo {
namespace {

// Who is linked to whom, by one's own side: row by row.
struct Adjacency {
  explicit Adjacency(const Topology& topology, bool both_ways) : begin(topology.nodes() + 1) {
    for (const Link& link : topology.links) {
      ++begin[link.from + 1];
      if (both_ways) ++begin[link.to + 1];
    }
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    to.resize(begin.back());
    auto next = begin;
    for (const Link& link : topology.links) {
      to[next[link.from]++] = link.to;
      if (both_ways) to[next[link.to]++] = link.from;
    }
  }
  std::vector<std::size_t> begin;
  std::vector<Node> to;
};

// The longest shortest path that begins at `host`; none if it does not reach every other host.
std::optional<std::uint32_t> eccentricity(const Topology& topology, const Adjacency& neighbours, Node host,
                                          std::vector<std::uint32_t>& hops) {
  constexpr std::uint32_t kFar = ~std::uint32_t{0};
  hops.assign(topology.nodes(), kFar);
  hops[host] = 0;
  std::vector<Node> queue{host};
  std::size_t reached = 0;
  std::uint32_t longest = 0;
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const Node node = queue[at];
    if (node < topology.hosts.size()) {
      ++reached;
      longest = hops[node];
    }
    for (std::size_t i = neighbours.begin[node]; i < neighbours.begin[node + 1]; ++i) {
      if (hops[neighbours.to[i]] != kFar) continue;
      hops[neighbours.to[i]] = hops[node] + 1;
      queue.push_back(neighbours.to[i]);
    }
  }
  if (reached < topology.hosts.size()) return std::nullopt;
  return longest;
}

// Bridges by depth-first search (Tarjan, A note on finding the bridges of a graph, 1974): the edge above `node` is one if nothing
// below reaches higher than `node`. Nodes are numbered in the order of the search, so that a subtree is a range of numbers.
class Search {
 public:
  explicit Search(const Topology& topology)
      : topology_(topology),
        neighbours_(topology, true),
        number_(topology.nodes(), kUnseen),
        low_(topology.nodes()),
        parent_(topology.nodes()) {
    for (Node root = 0; root < topology.nodes(); ++root) {
      if (number_[root] == kUnseen) walk(root);
    }
  }

  std::vector<Neck> necks(const Components& components) const {
    std::map<std::pair<Node, Node>, double> rate;  // of both directions of what may be a neck
    for (const Link& link : topology_.links) rate[{link.from, link.to}] += link.rate;
    const auto of = [&](Node from, Node to) {
      const auto found = rate.find({from, to});
      return found == rate.end() ? 0.0 : found->second;
    };
    std::vector<std::uint32_t> size(topology_.nodes(), 1);
    for (std::size_t i = order_.size(); i-- > 0;) {
      if (parent_[order_[i]] != order_[i]) size[parent_[order_[i]]] += size[order_[i]];
    }
    std::vector<Neck> necks;
    for (const Node node : order_) {
      const Node above = parent_[node];
      if (above == node || low_[node] < number_[node]) continue;
      const auto& all = components.hosts[components.of[node]];
      const auto below = [&](Node host) {
        return number_[host] >= number_[node] && number_[host] < number_[node] + size[node];
      };
      const std::size_t inside = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), below));
      for (const bool lower : {true, false}) {
        const std::size_t hosts = lower ? inside : all.size() - inside;
        if (hosts < 2 || 2 * hosts > all.size()) continue;
        Neck neck{lower ? node : above, lower ? above : node, 0, 0, {}};
        neck.out = of(neck.inner, neck.outer);
        neck.in = of(neck.outer, neck.inner);
        std::copy_if(all.begin(), all.end(), std::back_inserter(neck.hosts), [&](Node host) { return below(host) == lower; });
        necks.push_back(std::move(neck));
      }
    }
    return necks;
  }

 private:
  static constexpr std::uint32_t kUnseen = ~std::uint32_t{0};

  void walk(Node root) {
    parent_[root] = root;
    std::vector<std::pair<Node, std::size_t>> path;  // a node and which of its neighbours is next
    const auto enter = [&](Node node) {
      number_[node] = low_[node] = static_cast<std::uint32_t>(order_.size());
      order_.push_back(node);
      path.emplace_back(node, neighbours_.begin[node]);
    };
    enter(root);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < neighbours_.begin[node + 1]) {
        const Node to = neighbours_.to[next++];
        if (number_[to] == kUnseen) {
          parent_[to] = node;
          enter(to);
        } else if (to != parent_[node]) {
          low_[node] = std::min(low_[node], number_[to]);
        }
      } else {
        low_[parent_[node]] = std::min(low_[parent_[node]], low_[node]);
        path.pop_back();
      }
    }
  }

  const Topology& topology_;
  Adjacency neighbours_;
  std::vector<std::uint32_t> number_, low_;  // in the order of the search; the least reached from below
  std::vector<Node> parent_, order_;
};

}  // namespace

Facts facts(const Topology& topology) {
  Facts found;
  found.components = components(topology);
  found.out.resize(topology.hosts.size());
  found.in.resize(topology.hosts.size());
  for (const Link& link : topology.links) {
    ++found.links_by_rate[link.rate];
    if (link.from < topology.hosts.size()) found.out[link.from] += link.rate;
    if (link.to < topology.hosts.size()) found.in[link.to] += link.rate;
  }

  found.diameter_counted = topology.hosts.size() <= kMostCounted;
  if (found.diameter_counted && !topology.hosts.empty()) {
    const Adjacency neighbours(topology, false);
    std::vector<std::uint32_t> hops;
    found.diameter = 0;
    for (Node host = 0; host < topology.hosts.size() && found.diameter; ++host) {
      const auto longest = eccentricity(topology, neighbours, host, hops);
      found.diameter = longest ? std::optional(std::max(*longest, *found.diameter)) : std::nullopt;
    }
  }

  const auto each = [](const Neck& neck) { return std::min(neck.out, neck.in) / static_cast<double>(neck.hosts.size()); };
  found.necks = Search(topology).necks(found.components);
  std::erase_if(found.necks, [&](const Neck& neck) {
    double own_out = 0, own_in = 0;
    for (const Node host : neck.hosts) {
      own_out += found.out[host];
      own_in += found.in[host];
    }
    return neck.out >= own_out && neck.in >= own_in;
  });
  std::stable_sort(found.necks.begin(), found.necks.end(), [&](const Neck& a, const Neck& b) { return each(a) < each(b); });
  return found;
}

std::string show_rate(const Topology& topology, double rate) {
  return topology.relative ? fmt::format("{:g} {}", rate, rate == 1 ? "link unit" : "link units") : shoal::show_rate(rate);
}

}  // namespace shoal::topo
