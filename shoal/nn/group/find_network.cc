#include "shoal/nn/group/find_network.h"

#include <cstdio>
#include <optional>

#include "shoal/collective/certificate.h"
#include "shoal/collective/known_network.h"
#include "shoal/collective/program_cache.h"

namespace shoal::nn {
namespace {

constexpr double kUnequal = 1.5;  // the fastest over the slowest: then it is worth knowing why

}  // namespace

std::shared_ptr<const collective::KnownNetwork> find_network(net::Job& job, const Said& said, const collective::LinkModel& link,
                                                             std::uint64_t operation, Nanoseconds patience,
                                                             const Telling& tell) {
  if (said.topology == "none") return nullptr;
  net::Transport& transport = job.transport();
  const net::Rank size = transport.size(), rank = transport.rank();
  if (said.topology == "auto") {
    const auto hosts = collective::hosts_of(job.members());
    if (collective::count(hosts) == 1 || size < 3 || size > collective::kMostExactHosts) return nullptr;
    const auto rates = collective::measure_hosts(transport, hosts, link, operation, transport.now() + patience);
    if (rates.inequality < kUnequal) {
      if (!collective::are_shared(hosts) || !(rates.near > 0 && rates.far > 0)) return nullptr;
      return collective::KnownNetwork::without_trees(collective::network_of(hosts, rates.near, rates.far));
    }
    if (rank == 0)
      std::fputs("shoal: hosts' links are unequal: measuring the network (SHOAL_TOPOLOGY=FILE says it, none leaves it)\n",
                 stderr);
  }
  std::optional<topo::Topology> measured;
  if (!said.is_file()) measured = collective::measure_network(job, operation + collective::kTogetherOperations);
  if (rank != 0) return collective::KnownNetwork::from_json(tell(""), "rank 0's network");
  const auto make = [&] {
    return collective::KnownNetwork::made_for(measured ? *measured : collective::topology_for(said.topology, size), collective::ProgramCache::of_user());
  };
  return collective::KnownNetwork::made_and_told(make, tell);
}

std::shared_ptr<const collective::KnownNetwork> measure_again(net::Job& job, const std::shared_ptr<const collective::KnownNetwork>& network,
                                                              const collective::LinkModel& link, std::uint64_t operation, Nanoseconds patience) {
  topo::Topology now;
  if (network->made(collective::Collective::all_reduce, collective::kTrees) != nullptr) {
    now = collective::measure_network(job, operation + collective::kTogetherOperations);
  } else {
    const auto hosts = collective::hosts_of(job.members());
    const auto rates = collective::measure_hosts(job.transport(), hosts, link, operation, job.transport().now() + patience);
    if (!(rates.near > 0 && rates.far > 0)) return network;
    now = collective::network_of(hosts, rates.near, rates.far);
  }
  const auto anew = network->measured_anew(std::move(now));
  return anew ? anew : network;
}

}  // namespace shoal::nn
