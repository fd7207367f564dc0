// Machines and the links between them: a directed multigraph of hosts and switches, each link with its rate and latency.
// Declared in a JSON file, made by a generator (generate.h), imported (import.h) or measured (infer.h). A value; share across threads.
//
//   {"name": "two hosts", "bandwidth_unit": "Gbit/s", "compute": ["a", "b"], "switches": ["s"],
//    "links": [{"src": "a", "dst": "s", "bw": 1, "alpha_us": 50}, {"src": "s", "dst": "a", "bw": 1}, ...]}
//
// bandwidth_unit: bytes/s, MB/s, GB/s (all decimal), Mbit/s or Gbit/s, each optionally followed by "per direction"; or
// "link units", where only ratios mean something. Latency is 0 where alpha_us is absent. Other keys are for people.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "shoal/core/time.h"

namespace shoal::topo {

using Node = std::uint32_t;  // hosts are 0 .. hosts.size()-1, switches follow

struct Link {                // one direction
  Node from = 0, to = 0;
  double rate = 0;           // bytes/s; > 0
  Nanoseconds latency{0};
  bool operator==(const Link&) const = default;
};

struct Topology {
  std::string name, description;
  std::vector<std::string> hosts, switches;  // unequal names; hosts compute, switches only forward
  std::vector<Link> links;                   // may be parallel
  bool relative = false;                     // rates are multiples of some link's, not bytes/s

  std::size_t nodes() const { return hosts.size() + switches.size(); }
  void link_both_ways(Node a, Node b, double rate, Nanoseconds latency = Nanoseconds(0)) {
    links.push_back({a, b, rate, latency});
    links.push_back({b, a, rate, latency});
  }
  const std::string& node_name(Node node) const { return node < hosts.size() ? hosts[node] : switches[node - hosts.size()]; }
  std::string link_name(const Link& link) const { return node_name(link.from) + " > " + node_name(link.to); }
  bool operator==(const Topology&) const = default;
};

// 16 hexadecimal digits that are alike where hosts, switches and links are, whatever they are called: what was made for one network
// knows it again.
std::string digest(const Topology& topology);

// What is left of it with these hosts alone, numbered anew in this order: all switches, and the links between what is left, as they were.
Topology restricted_to(const Topology& topology, std::span<const Node> hosts);

inline constexpr std::size_t kMostNodes = 1 << 16, kMostLinks = 1 << 20;

// `where` begins error lines: a file's name. Throws Error{invalid_argument} that names the entry ("links[3].bw").
Topology topology_from_json(const std::string& text, const std::string& where = "topology");
std::string to_json(const Topology& topology);

Topology read_topology(const std::filesystem::path& file);
// Replaces the file whole or not at all. Throws Error{io}.
void write_topology(const Topology& topology, const std::filesystem::path& file);

}  // namespace shoal::topo
