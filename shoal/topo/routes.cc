#include "shoal/topo/routes.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"

namespace shoal::topo {
namespace {

constexpr std::uint32_t kUnreached = 0xffffffff;

// Links by one of their ends: those of `node` are order[first[node] .. first[node + 1]), the lowest number first.
void group(const Topology& topology, Node Link::*end, std::vector<std::uint32_t>& first, std::vector<std::uint32_t>& order) {
  first.assign(topology.nodes() + 1, 0);
  for (const Link& link : topology.links) ++first[link.*end + 1];
  for (std::size_t node = 0; node < topology.nodes(); ++node) first[node + 1] += first[node];
  order.resize(topology.links.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t link = 0; link < topology.links.size(); ++link) order[next[topology.links[link].*end]++] = link;
}

std::span<const std::uint32_t> of(Node node, const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& order) {
  return std::span(order).subspan(first[node], first[node + 1] - first[node]);
}

// Which of `choices` equal ways this pair takes at `node`. Well mixed, as hashes of switches are: of few pairs not all should come out alike.
std::size_t pick(Node from, Node to, Node node, std::size_t choices) {
  constexpr std::uint32_t kRoutesSite = 0x726f7574;
  return choices == 1 ? 0 : random_words(std::uint64_t{from} << 32 | to, node, 0, kRoutesSite)[0] % choices;
}

}  // namespace

Routes::Routes(const Topology& topology) : topology_(topology) {
  group(topology, &Link::to, first_in_, in_);
  group(topology, &Link::from, first_out_, out_);
}

std::vector<std::uint32_t> Routes::path(Node from, Node to, bool by_switches) {
  std::vector<std::uint32_t> links;
  if (from == to) return links;
  for (const std::uint32_t link : of(to, first_in_, in_)) {
    if (topology_.links[link].from == from && !by_switches) links.push_back(link);
  }
  if (!links.empty()) return {chosen(std::move(links), from, to, to)};

  if (!known_.contains(from)) {
    if ((known_.size() + 1) * 3 * topology_.nodes() > kMostDistances) known_.clear();
    known_.emplace(from, Distances{search(from, Through::switches), {}, {}});
  }
  Distances& known = known_.at(from);
  const auto refuse = [&](const char* how) {
    throw Error(Code::invalid_argument, fmt::format("no path from \"{}\" to \"{}\"{}", topology_.node_name(from), topology_.node_name(to), how),
                topology_.name);
  };
  if (by_switches) {
    if (known.past_links.empty()) known.past_links = search(from, Through::only_switches);
    if (known.past_links[to] == kUnreached) refuse(" through switches");
    walk_back(known.past_links, Through::only_switches, from, to, links);
  } else if (known.by_switches[to] != kUnreached) {
    walk_back(known.by_switches, Through::switches, from, to, links);
  } else {
    if (known.by_all.empty()) known.by_all = search(from, Through::all);
    if (known.by_all[to] == kUnreached) refuse("");
    walk_back(known.by_all, Through::all, from, to, links);
  }
  std::reverse(links.begin(), links.end());
  return links;
}

std::vector<Routes::Distance> Routes::search(Node from, Through through) const {
  std::vector<Distance> distances(topology_.nodes(), kUnreached);
  std::vector<Node> reached{from};
  distances[from] = 0;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const Node node = reached[next];
    if (node != from && !passes_on(node, through)) continue;
    for (const std::uint32_t link : of(node, first_out_, out_)) {
      const Node to = topology_.links[link].to;
      if (distances[to] != kUnreached || !may_take(topology_.links[link], through)) continue;
      distances[to] = distances[node] + 1;
      reached.push_back(to);
    }
  }
  return distances;
}

void Routes::walk_back(const std::vector<Distance>& distances, Through through, Node from, Node to, std::vector<std::uint32_t>& links) const {
  std::vector<std::uint32_t> equal;
  for (Node node = to; node != from;) {
    equal.clear();
    for (const std::uint32_t link : of(node, first_in_, in_)) {
      const Node before = topology_.links[link].from;
      if (distances[before] != distances[node] - 1 || (before != from && !passes_on(before, through)) ||
          !may_take(topology_.links[link], through)) {
        continue;
      }
      equal.push_back(link);
    }
    links.push_back(chosen(equal, from, to, node));
    node = topology_.links[links.back()].from;
  }
}

std::uint32_t Routes::chosen(std::vector<std::uint32_t> links, Node from, Node to, Node node) const {
  if (links.size() == 1) return links[0];
  std::unordered_map<Node, double> fastest;  // by where they begin
  for (const std::uint32_t link : links) {
    double& rate = fastest[topology_.links[link].from];
    rate = std::max(rate, topology_.links[link].rate);
  }
  std::erase_if(links, [&](std::uint32_t link) { return topology_.links[link].rate < fastest[topology_.links[link].from]; });
  return links[pick(from, to, node, links.size())];
}

}  // namespace shoal::topo
