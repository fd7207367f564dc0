#include <fmt/format.h>

#include <map>

#include "app/command.h"
#include "app/lab.h"
#include "shoal/topo/sets.h"

namespace shoal::app {
namespace {

using topo::Node;

struct Both {        // rates of all links between two nodes
  double there = 0, back = 0;
};

std::map<std::pair<Node, Node>, Both> joined(const topo::Topology& topology) {
  std::map<std::pair<Node, Node>, Both> found;
  for (const topo::Link& link : topology.links) {
    if (link.from < link.to) found[{link.from, link.to}].there += link.rate;
    else found[{link.to, link.from}].back += link.rate;
  }
  return found;
}

}  // namespace

Wiring wiring_of(const topo::Topology& topology) {
  const auto refuse_it = [&](const std::string& what, const std::string& hint) { refuse(what, "topology " + topology.name, hint); };
  if (topology.relative) refuse_it("has rates in link units", "give its links rates in bytes/s, Mbit/s, ...");
  const auto hosts = static_cast<Node>(topology.hosts.size()), switches = static_cast<Node>(topology.switches.size());
  Wiring wiring;
  std::vector<unsigned> links(hosts, 0);
  wiring.hosts.resize(hosts);
  topo::Sets joined_switches(switches);
  for (const auto& [ends, rate] : joined(topology)) {
    const auto& [a, b] = ends;
    const std::string between = topology.node_name(a) + " and " + topology.node_name(b);
    if (rate.there <= 0 || rate.back <= 0) refuse_it(between + " are linked in one direction only", "a lab's links go both ways");
    if (b < hosts) refuse_it(between + " are linked without a switch", "a lab's hosts hang on switches");
    if (a < hosts) {
      if (++links[a] > 1) refuse_it(topology.node_name(a) + " hangs on several switches", "a lab's hosts have one link");
      wiring.hosts[a] = {fmt::format("host{}", a), {}, {}, rate.there, rate.back, b - hosts};
      continue;
    }
    if (!joined_switches.join(a - hosts, b - hosts)) refuse_it(between + " close a ring of switches", "a lab has one way between any two hosts");
    wiring.trunks.push_back({a - hosts, b - hosts, rate.there, rate.back});
  }
  for (Node host = 0; host < hosts; ++host) {
    if (links[host] == 0) refuse_it(topology.node_name(host) + " has no link", "");
  }
  if (wiring.trunks.size() + 1 < switches) refuse_it("its switches are not joined", "");
  return wiring;
}

}  // namespace shoal::app
