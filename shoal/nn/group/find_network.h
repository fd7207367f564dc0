// The network that the members of a job are on, link by link, as far as somebody says or members find at their start: for sessions and for
// groups of the c10d backend alike.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shoal/collective/measure_network.h"
#include "shoal/nn/group/said.h"

namespace shoal::nn {

// How rank 0's words come to the others: on rank 0 tells, elsewhere returns them.
using Telling = std::function<std::string(const std::string& words)>;

// By said.topology
//   a file       a topology (shoal topo), host i for rank i; rank 0 reads it and tells the others
//   "measure"    measured link by link (collective/measure_network.h), some seconds
//   "none"       nullptr
//   "auto"       for three members and more on several hosts, kMostExactHosts at most: a round of 0.4 s; where hosts send to each other at unequal
//                rates, measured link by link; where they do not and members share hosts, what goes within them and between them at once; else nullptr
// link: what is known of the members as a whole, by which the round is made. By all members together; uses find_network_operations(size) numbers of
// the transport from `operation` on. Blocks. Throws Error{invalid_argument} for a file that is wrong or has not a host for every member.
std::shared_ptr<const collective::KnownNetwork> find_network(net::Job& job, const Said& said, const collective::LinkModel& link,
                                                             std::uint64_t operation, Nanoseconds patience,
                                                             const Telling& tell);
// Of a network that members found: the same programs on links as they are now. By all together; numbers as above.
std::shared_ptr<const collective::KnownNetwork> measure_again(net::Job& job, const std::shared_ptr<const collective::KnownNetwork>& network,
                                                              const collective::LinkModel& link, std::uint64_t operation, Nanoseconds patience);
constexpr std::uint64_t find_network_operations(std::uint32_t size) {
  return collective::kTogetherOperations + collective::measure_operations(size);
}

}  // namespace shoal::nn
