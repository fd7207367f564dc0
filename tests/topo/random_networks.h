// Networks as odd as they come: hosts and switches joined anyhow, rates that differ by direction or do not; and regular ones of any size, whose hosts come
// in any order.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shoal/core/seed.h"
#include "shoal/topo/components.h"
#include "shoal/topo/generate.h"
#include "shoal/topo/topology.h"

namespace shoal::topo {

struct Oddity {
  std::uint32_t most_hosts = 7, most_switches = 2;
  bool symmetric = false;
};

// Connected, both ways. Rates are 1, 2, 3, 5 or 10 units.
inline Topology random_network(std::uint64_t seed, const Oddity& oddity) {
  auto draw = [&, k = 0U](std::uint32_t below) mutable { return random_words(seed, 1, k++, 2)[0] % below; };
  constexpr double kRates[] = {1, 2, 3, 5, 10};
  Topology topology;
  topology.name = "random " + std::to_string(seed);
  topology.relative = true;
  const std::uint32_t hosts = 1 + draw(oddity.most_hosts), switches = draw(oddity.most_switches + 1), nodes = hosts + switches;
  for (std::uint32_t h = 0; h < hosts; ++h) topology.hosts.push_back("h" + std::to_string(h));
  for (std::uint32_t s = 0; s < switches; ++s) topology.switches.push_back("s" + std::to_string(s));
  const auto join = [&](Node a, Node b) {
    const double rate = kRates[draw(5)];
    topology.links.push_back({a, b, rate, Nanoseconds(0)});
    topology.links.push_back({b, a, oddity.symmetric ? rate : kRates[draw(5)], Nanoseconds(0)});
  };
  for (Node node = 1; node < nodes; ++node) join(draw(node), node);
  for (std::uint32_t k = draw(2 * nodes); k > 0 && nodes > 1; --k) {
    const Node a = draw(nodes), b = draw(nodes);
    if (a != b) join(a, b);
  }
  return topology;
}

// The same network with its hosts in another order, so that nobody can count on their numbers.
inline Topology in_other_order(const Topology& topology, std::uint64_t seed) {
  std::vector<Node> to(topology.nodes());
  std::iota(to.begin(), to.end(), Node{0});
  const auto hosts = static_cast<std::uint32_t>(topology.hosts.size());
  for (std::uint32_t k = hosts; k > 1; --k)
    std::swap(to[k - 1], to[random_words(41, static_cast<std::uint32_t>(seed), k, 0)[0] % k]);
  Topology made = topology;
  for (Node host = 0; host < hosts; ++host) made.hosts[to[host]] = topology.hosts[host];
  for (Link& link : made.links) link = {to[link.from], to[link.to], link.rate, link.latency};
  return made;
}

// A network that has a form, at most 36 hosts in one piece: a grid of one to three dimensions, open or closed, of which blocks of chips may be dead (in two
// dimensions mostly whole blocks of 2x2 as they fail); or racks, or sites.
inline Topology random_regular_network(std::uint64_t seed) {
  auto draw = [&, k = 0U](std::uint32_t below) mutable { return random_words(seed, 2, k++, 2)[0] % below; };
  const Wire wire{1, {}}, line{1.0 / (1 + draw(4)), {}};
  Topology made;
  const std::uint32_t kind = draw(8);
  if (kind < 2) {
    const std::uint32_t parts = 2 + draw(3), hosts = 2 + draw(5);
    made = kind == 0 ? fat_tree(parts, hosts, wire, line) : multi_site(parts, hosts, wire, line);
  } else {
    do {
      const std::uint32_t dimensions = 1 + draw(3), most = dimensions == 1 ? 12 : dimensions == 2 ? 6 : 3;
      Grid grid{{}, {}, wire, {}};
      for (std::uint32_t d = 0; d < dimensions; ++d) {
        grid.sizes.push_back(2 + draw(most - 1));
        grid.wraps.push_back(draw(2) == 0);
      }
      const bool in_blocks = dimensions == 2 && draw(4) != 0;
      if (in_blocks) {
        for (std::uint32_t& size : grid.sizes) size += size % 2;
      }
      for (std::uint32_t holes = draw(3); holes > 0 && dimensions > 1; --holes) {
        Block dead;
        for (const std::uint32_t size : grid.sizes) {
          dead.corner.push_back(in_blocks ? 2 * draw(size / 2) : draw(size));
          dead.extent.push_back(in_blocks ? 2 : 1);
        }
        grid.dead.push_back(std::move(dead));
      }
      if (in_blocks && grid.sizes[0] * grid.sizes[1] <= 8) grid.dead.clear();  // somebody lives
      made = topo::grid(grid);
    } while (made.hosts.size() < 2 || components(made).hosts.size() != 1);
  }
  made.name += " " + std::to_string(seed);
  return in_other_order(made, seed);
}

}  // namespace shoal::topo
