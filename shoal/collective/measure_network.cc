#include "shoal/collective/measure_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shoal/topo/infer.h"

namespace shoal::collective {

namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kPatienceARound = 60s, kPatienceAPair = 10s;

// Members of one machine have one host's name: their ranks tell them apart.
std::vector<std::string> unequal_names(const net::Job& job, net::Rank size) {
  std::map<std::string, int> times;
  for (net::Rank rank = 0; rank < size; ++rank) ++times[job.members()[rank].host];
  std::vector<std::string> names;
  for (net::Rank rank = 0; rank < size; ++rank) {
    const std::string& host = job.members()[rank].host;
    names.push_back(times[host] == 1 ? host : fmt::format("{}:{}", host, rank));
  }
  return names;
}

// The network that explains what pairs get alone and groups of them together.
topo::Topology infer_network(net::Transport& transport, const std::vector<std::string>& hosts, const PairMatrix& alone,
                             std::uint64_t operation) {
  topo::PairsAlone pairs;
  for (const PairFigures& pair : alone.figures) {
    pairs.rate.push_back(pair.rate_alone);
    pairs.latency.push_back(pair.latency);
  }
  return topo::infer(hosts, pairs, [&](std::span<const topo::Flow> flows) {
    const std::vector<topo::Flow> round(flows.begin(), flows.end());
    return probe_together(transport, round, alone, std::exchange(operation, operation + kTogetherOperations),
                          transport.now() + kPatienceARound);
  });
}

}  // namespace

topo::Topology measure_network(net::Job& job, std::uint64_t operation) {
  net::Transport& transport = job.transport();
  const net::Rank size = transport.size();
  transport.doing("measuring the network: every pair alone");
  const PairMatrix pairs = probe_pairs(transport, operation, transport.now() + kPatienceARound + size * size * kPatienceAPair);
  transport.doing("measuring the network: flows together");
  return infer_network(transport, unequal_names(job, size), pairs, operation + pair_probe_operations(size));
}

HostRates measure_hosts(net::Transport& transport, const Hosts& hosts, const LinkModel& link, std::uint64_t operation, Instant deadline) {
  const auto size = static_cast<std::uint32_t>(hosts.size());
  const std::vector<topo::Flow> flows = host_flows(hosts);
  PairMatrix guess{size, std::vector<PairFigures>(std::size_t{size} * size, {link.alpha, link.rate, link.rate})};
  for (const topo::Flow& flow : flows) {
    if (hosts[flow.from] == hosts[flow.to]) guess.figures[std::size_t{flow.from} * size + flow.to].rate_alone = LinkModel::one_machine().rate;
  }
  return host_rates(hosts, probe_together(transport, flows, guess, operation, deadline));
}

}  // namespace shoal::collective
