#include "shoal/topo/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/core/error.h"
#include "shoal/topo/rate.h"

namespace shoal::topo {
namespace {

constexpr std::size_t kMostDimensions = 8;

[[noreturn]] void refuse_form(const char* form, const std::string& what) { throw Error(Code::invalid_argument, what, form); }

void check(const char* form, const Wire& wire) {
  if (!(wire.rate > 0) || !std::isfinite(wire.rate)) refuse_form(form, "a rate must be a positive number");
  if (!is_rate(wire.rate)) refuse_form(form, kNoSuchRate);
  if (wire.latency < Nanoseconds(0)) refuse_form(form, "a latency is negative");
}

// The product, unless it or one of its factors is out of bounds.
std::uint64_t bounded_product(const char* form, std::span<const std::uint32_t> factors) {
  std::uint64_t product = 1;
  for (const std::uint32_t factor : factors) {
    if (factor == 0) refuse_form(form, "a count is 0");
    product *= factor;
    if (product > kMostNodes) refuse_form(form, fmt::format("more than {} hosts", kMostNodes));
  }
  return product;
}

void add_numbered_hosts(Topology& topology, std::uint64_t count) {
  for (std::uint64_t host = 0; host < count; ++host) topology.hosts.push_back(std::to_string(host));
}

// Chips of a grid in row-major order: the last coordinate is the fastest.
struct Coordinates {
  std::span<const std::uint32_t> sizes;

  std::vector<std::uint32_t> of(std::uint64_t index) const {
    std::vector<std::uint32_t> at(sizes.size());
    for (std::size_t d = sizes.size(); d-- > 0; index /= sizes[d]) at[d] = static_cast<std::uint32_t>(index % sizes[d]);
    return at;
  }
  std::uint64_t index(std::span<const std::uint32_t> at) const {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) index = index * sizes[d] + at[d];
    return index;
  }
};

void check(const Grid& grid) {
  const std::size_t dimensions = grid.sizes.size();
  if (dimensions == 0 || dimensions > kMostDimensions) refuse_form("grid", fmt::format("has 1 to {} dimensions", kMostDimensions));
  if (grid.wraps.size() != dimensions)
    refuse_form("grid", fmt::format("{} dimensions, but {} say whether they wrap", dimensions, grid.wraps.size()));
  for (const Block& block : grid.dead) {
    if (block.corner.size() != dimensions || block.extent.size() != dimensions)
      refuse_form("grid", fmt::format("a dead block has other than {} dimensions", dimensions));
    for (std::size_t d = 0; d < dimensions; ++d) {
      if (block.extent[d] == 0 || std::uint64_t{block.corner[d]} + block.extent[d] > grid.sizes[d]) {
        refuse_form("grid", fmt::format("the dead block at {} reaches beyond the grid of {}", fmt::join(block.corner, ","),
                                   fmt::join(grid.sizes, "x")));
      }
    }
  }
}

bool holds(const Block& block, std::span<const std::uint32_t> at) {
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (at[d] < block.corner[d] || at[d] - block.corner[d] >= block.extent[d]) return false;
  }
  return true;
}

}  // namespace

Topology star(std::span<const Wire> hosts) {
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(hosts.size(), kMostNodes));
  bounded_product("star", std::array{count, 1u});
  if (hosts.size() >= kMostNodes) refuse_form("star", fmt::format("more than {} hosts", kMostNodes - 1));
  Topology topology;
  topology.name = fmt::format("star_{}", hosts.size());
  topology.description = fmt::format("{} hosts on one switch", hosts.size());
  add_numbered_hosts(topology, hosts.size());
  topology.switches = {"s"};
  for (Node host = 0; host < hosts.size(); ++host) {
    check("star", hosts[host]);
    topology.link_both_ways(host, static_cast<Node>(hosts.size()), hosts[host].rate, hosts[host].latency);
  }
  return topology;
}

Topology fat_tree(std::uint32_t racks, std::uint32_t hosts, Wire wire, Wire uplink) {
  const auto count = static_cast<Node>(bounded_product("fat tree", std::array{racks, hosts}));
  if (count + std::uint64_t{racks} + 1 > kMostNodes)
    refuse_form("fat tree", fmt::format("more than {} hosts and switches", kMostNodes));
  check("fat tree", wire);
  check("fat tree", uplink);
  Topology topology;
  topology.name = fmt::format("fattree_{}x{}", racks, hosts);
  topology.description = fmt::format("{} racks of {} hosts under one core switch", racks, hosts);
  add_numbered_hosts(topology, count);
  const Node core = count + racks;
  for (Node rack = 0; rack < racks; ++rack) {
    topology.switches.push_back(fmt::format("t_{}", rack));
    for (Node host = rack * hosts; host < (rack + 1) * hosts; ++host)
      topology.link_both_ways(host, count + rack, wire.rate, wire.latency);
    topology.link_both_ways(count + rack, core, uplink.rate, uplink.latency);
  }
  topology.switches.push_back("core");
  return topology;
}

Topology multi_site(std::uint32_t sites, std::uint32_t hosts, Wire wire, Wire line) {
  const auto count = static_cast<Node>(bounded_product("multi-site", std::array{sites, hosts}));
  if (count + std::uint64_t{sites} > kMostNodes || std::uint64_t{sites} * (sites - 1) + 2 * std::uint64_t{count} > kMostLinks) {
    refuse_form("multi-site", fmt::format("more than {} hosts and switches or {} links", kMostNodes, kMostLinks));
  }
  check("multi-site", wire);
  check("multi-site", line);
  Topology topology;
  topology.name = fmt::format("sites_{}x{}", sites, hosts);
  topology.description = fmt::format("{} sites of {} hosts, a line between every two", sites, hosts);
  add_numbered_hosts(topology, count);
  for (Node site = 0; site < sites; ++site) {
    topology.switches.push_back(fmt::format("s_{}", site));
    for (Node host = site * hosts; host < (site + 1) * hosts; ++host)
      topology.link_both_ways(host, count + site, wire.rate, wire.latency);
    for (Node other = 0; other < site; ++other) topology.link_both_ways(count + other, count + site, line.rate, line.latency);
  }
  return topology;
}

Topology grid(const Grid& grid) {
  check(grid);
  check("grid", grid.wire);
  const std::uint64_t chips = bounded_product("grid", grid.sizes);
  const Coordinates coordinates{grid.sizes};

  Topology topology;
  constexpr Node kDead = ~Node{0};
  std::vector<Node> node_at(chips, kDead);
  for (std::uint64_t chip = 0; chip < chips; ++chip) {
    const auto at = coordinates.of(chip);
    bool dead = false;
    for (const Block& block : grid.dead) dead = dead || holds(block, at);
    if (dead) continue;
    node_at[chip] = static_cast<Node>(topology.hosts.size());
    topology.hosts.push_back(fmt::format("{}", fmt::join(at, "_")));
  }
  if (topology.hosts.empty()) refuse_form("grid", "no chip lives");

  bool wraps_somewhere = false;
  for (std::uint64_t chip = 0; chip < chips; ++chip) {
    if (node_at[chip] == kDead) continue;
    const auto at = coordinates.of(chip);
    for (std::size_t d = 0; d < at.size(); ++d) {
      auto next = at;
      const bool last = ++next[d] == grid.sizes[d];
      if (last && (!grid.wraps[d] || grid.sizes[d] < 3)) continue;
      if (last) next[d] = 0;
      wraps_somewhere = wraps_somewhere || last;
      const Node neighbour = node_at[coordinates.index(next)];
      if (neighbour != kDead) topology.link_both_ways(node_at[chip], neighbour, grid.wire.rate, grid.wire.latency);
    }
  }
  topology.name = fmt::format("{}_{}", wraps_somewhere ? "torus" : "mesh", fmt::join(grid.sizes, "x"));
  topology.description = fmt::format("{} chips in a grid of {}", topology.hosts.size(), fmt::join(grid.sizes, "x"));
  if (topology.hosts.size() < chips) topology.description += fmt::format(", {} dead", chips - topology.hosts.size());
  return topology;
}

}  // namespace shoal::topo
