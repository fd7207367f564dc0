#include "shoal/collective/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace shoal::collective {

namespace {

// Numbers for keys in the order in which they come.
template <class Key>
Hosts numbered(const std::vector<Key>& keys) {
  std::map<Key, std::uint32_t> numbers;
  Hosts hosts;
  for (const Key& key : keys) hosts.push_back(numbers.emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second);
  return hosts;
}

}  // namespace

Hosts hosts_of(const std::vector<net::MemberInfo>& members) {
  std::vector<std::string> boots;
  for (const net::MemberInfo& member : members) boots.push_back(member.boot);
  return numbered(boots);
}

Hosts hosts_in(const topo::Topology& topology) {
  const auto members = static_cast<topo::Node>(topology.hosts.size());
  std::vector<std::set<topo::Node>> beside(members);
  for (const topo::Link& link : topology.links) {
    if (link.from < members) beside[link.from].insert(link.to);
    if (link.to < members) beside[link.to].insert(link.from);
  }
  std::vector<topo::Node> on(members);  // its switch, or itself
  for (topo::Node member = 0; member < members; ++member) {
    const bool hangs = beside[member].size() == 1 && *beside[member].begin() >= members;
    on[member] = hangs ? *beside[member].begin() : member;
  }
  return numbered(on);
}

std::uint32_t count(const Hosts& hosts) { return hosts.empty() ? 0 : *std::max_element(hosts.begin(), hosts.end()) + 1; }

bool are_shared(const Hosts& hosts) { return count(hosts) > 1 && count(hosts) < hosts.size(); }

std::vector<std::vector<std::uint32_t>> members_by_host(const Hosts& hosts) {
  std::vector<std::vector<std::uint32_t>> members(count(hosts));
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) members[hosts[rank]].push_back(rank);
  return members;
}

topo::Topology network_of(const Hosts& hosts, double near, double far) {
  topo::Topology topology;
  topology.name = "members on hosts";
  const auto members = static_cast<topo::Node>(hosts.size()), number = count(hosts);
  std::vector<std::uint32_t> seen(number, 0);
  for (const std::uint32_t host : hosts) topology.hosts.push_back(fmt::format("{}.{}", host, seen[host]++));
  for (std::uint32_t host = 0; host < number; ++host) topology.switches.push_back(fmt::format("host {}", host));
  topology.switches.emplace_back("between hosts");
  for (topo::Node member = 0; member < members; ++member) topology.link_both_ways(member, members + hosts[member], near);
  for (std::uint32_t host = 0; host < number; ++host) topology.link_both_ways(members + host, members + number, far);
  return topology;
}

std::vector<topo::Flow> host_flows(const Hosts& hosts) {
  const std::vector<std::vector<net::Rank>> on = members_by_host(hosts);
  std::vector<topo::Flow> flows;
  for (std::size_t host = 0; host < on.size(); ++host) flows.push_back({on[host].back(), on[(host + 1) % on.size()].front()});
  for (const auto& members : on) {
    for (std::size_t i = 0; members.size() > 1 && i < members.size(); ++i) flows.push_back({members[i], members[(i + 1) % members.size()]});
  }
  return flows;
}

HostRates host_rates(const Hosts& hosts, const std::vector<double>& rates) {
  const auto within = rates.begin() + count(hosts);
  const auto [slowest, fastest] = std::minmax_element(rates.begin(), within);
  const double near = within == rates.end() ? std::numeric_limits<double>::infinity() : *std::min_element(within, rates.end());
  return {near, *slowest, *slowest > 0 ? *fastest / *slowest : 1};
}

}  // namespace shoal::collective
