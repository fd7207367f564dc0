// What a topology is like, counted: what `shoal topo show` says. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shoal/topo/components.h"
#include "shoal/topo/topology.h"

namespace shoal::topo {

// A connection whose loss would cut hosts off: whatever they exchange with the rest passes it. Parallel links count as one.
struct Neck {
  Node inner = 0, outer = 0;  // its ends; `inner` on the side of the hosts
  double out = 0, in = 0;     // bytes/s, both directions; 0 where there is none
  std::vector<Node> hosts;    // two or more, at most half of the component's
};

struct Facts {
  std::map<double, std::size_t> links_by_rate;
  Components components;
  std::optional<std::uint32_t>
      diameter;  // hops of the longest shortest path between two hosts; none where a host cannot reach another
  bool diameter_counted = true;           // false above kMostCounted hosts
  std::vector<double> out, in;            // by host: the sum of its links
  std::vector<Neck> necks;                // that give their hosts less than their own links do; the tightest a host first
};

inline constexpr std::size_t kMostCounted = 8192;

// O(hosts * (nodes + links)) for the diameter, else O(nodes + links) and the sizes of the necks.
Facts facts(const Topology& topology);

// "500 Mbit/s", or "0.5 link units" where rates are relative.
std::string show_rate(const Topology& topology, double rate);

}  // namespace shoal::topo
