// Which network the members of a job are on, measured: link by link, or, where that tells enough, host by host (hosts.h).
//
// All members call the same at the same place with the same operation numbers, and get the same value. Blocks; any thread but the loop. Throws the Error
// that ended it; at a deadline Error{timeout}.
#pragma once

#include <cstdint>

#include "shoal/collective/hosts.h"
#include "shoal/collective/probe_together.h"
#include "shoal/net/job.h"
#include "shoal/topo/topology.h"

namespace shoal::collective {

// Pairs alone (probe.h), then groups of them together, until all that they get is explained (topo/infer.h); host i is rank i, under its host's name, with
// its rank behind it where several members are on one. Uses measure_operations(members) numbers from `operation` on; some seconds, more the more
// members there are and the slower their links.
topo::Topology measure_network(net::Job& job, std::uint64_t operation);
constexpr std::uint64_t measure_operations(std::uint32_t size) {
  return pair_probe_operations(size) + kTogetherOperations * 5 * size;
}

// What goes within hosts and between them at once, in one round. `link`: what is known of the members as a whole, by which it is made. Uses
// kTogetherOperations numbers from `operation` on.
HostRates measure_hosts(net::Transport& transport, const Hosts& hosts, const LinkModel& link, std::uint64_t operation,
                        Instant deadline);

}  // namespace shoal::collective
