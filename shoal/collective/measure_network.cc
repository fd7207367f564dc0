#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "shoal/collective/probe_together.h"

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

}  // namespace

topo::Topology measure_network(net::Job& job, std::uint64_t operation) {
  net::Transport& transport = job.transport();
  const net::Rank size = transport.size();
  transport.doing("measuring the network: every pair alone");
  const PairMatrix pairs = probe_pairs(transport, operation, transport.now() + kPatienceARound + size * size * kPatienceAPair);
  transport.doing("measuring the network: flows together");
  return infer_network(transport, unequal_names(job, size), pairs, operation + pair_probe_operations(size), kPatienceARound);
}

}  // namespace shoal::collective
