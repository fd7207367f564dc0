// Networks as odd as they come: hosts and switches joined anyhow, rates that differ by direction or do not.
#pragma once

#include <cstdint>
#include <string>

#include "shoal/core/seed.h"
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

}  // namespace shoal::topo
