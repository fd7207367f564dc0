// Members that share hosts: as many as a machine has devices. Inside of a host bytes go through memory, between hosts all members of one
// share its link, so that what they have is added there first (hierarchical_all_reduce) and crosses once.
//
// Pure: all members make the same of the same members and rates (measure_network.h measures them).
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/net/job.h"
#include "shoal/topo/infer.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

using Hosts = std::vector<std::uint32_t>;  // [rank]: the number of its host; hosts are numbered from 0 in the order of their first members

Hosts hosts_of(const std::vector<net::MemberInfo>& members);
// In a topology: what hangs on one switch by nothing but links to that is together, whoever hangs elsewhere is alone.
Hosts hosts_in(const topo::Topology& topology);
std::uint32_t count(const Hosts& hosts);   // how many hosts there are
bool are_shared(const Hosts& hosts);       // several hosts, one of them with several members
std::vector<std::vector<std::uint32_t>> members_by_host(const Hosts& hosts);  // [host]: its members, by rank

// Every member on a link of `near` bytes/s each way to its host's switch, every host on one of `far` to the others'.
topo::Topology network_of(const Hosts& hosts, double near, double far);

// Flows that show what goes within and between several hosts at once: one of every host to the next host, in the order of the hosts; then every
// member to the next one of its host.
std::vector<topo::Flow> host_flows(const Hosts& hosts);
struct HostRates {        // bytes/s that these get
  double near = 0;        // the slowest inside of a host; endless where no host has several members
  double far = 0;         // the slowest between hosts
  double inequality = 1;  // the fastest between hosts over the slowest
};
HostRates host_rates(const Hosts& hosts, const std::vector<double>& rates);  // as many as there are flows

}  // namespace shoal::collective
