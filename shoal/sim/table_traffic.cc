#include "shoal/sim/table_traffic.h"

#include <utility>

#include "shoal/collective/author.h"
#include "shoal/core/error.h"

namespace shoal::sim {
namespace {

using collective::kInput;
using collective::kOutput;

// Ranks are the workers, then the shards; every pair of them has a chunk and a lane at either end. (Called a broadcast because that may
// have any number of chunks.)
std::shared_ptr<const collective::Program> between(const std::string& name, std::uint32_t workers, std::uint32_t shards, bool to_shards) {
  collective::Author author(name, collective::Collective::broadcast, workers + shards, collective::AddOrder::none);
  author.chunks(workers * shards);
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      const std::uint32_t chunk = worker * shards + shard, at_worker = author.lane(worker), at_shard = author.lane(workers + shard);
      const auto from = to_shards ? std::pair(worker, at_worker) : std::pair(workers + shard, at_shard);
      const auto to = to_shards ? std::pair(workers + shard, at_shard) : std::pair(worker, at_worker);
      author.add(from.first, from.second, collective::send(to.first, chunk, kInput));
      author.add(to.first, to.second, collective::receive(from.first, from.second, chunk, kOutput));
    }
  }
  return std::make_shared<const collective::Program>(author.take());
}

}  // namespace

void add_jobs(const TableTraffic& traffic, std::vector<Job>& jobs) {
  if (traffic.workers.empty() || traffic.shards.empty()) throw Error(Code::invalid_argument, "needs a worker and a shard", traffic.name);
  const auto workers = static_cast<std::uint32_t>(traffic.workers.size()), shards = static_cast<std::uint32_t>(traffic.shards.size());
  Job pull;
  pull.name = traffic.name + " pull";
  pull.program = between("pull", workers, shards, false);
  pull.elements = traffic.pulled * workers;
  pull.element_bytes = 1;
  pull.hosts = traffic.workers;
  pull.hosts.insert(pull.hosts.end(), traffic.shards.begin(), traffic.shards.end());
  pull.priority = traffic.priority;
  Job push = pull;
  push.name = traffic.name + " push";
  push.program = between("push", workers, shards, true);
  push.elements = traffic.pushed * workers;

  const auto first = static_cast<std::uint32_t>(jobs.size());
  const auto pull_of = [&](std::uint32_t clock) { return first + 2 * clock; };
  const auto push_of = [&](std::uint32_t clock) { return first + 2 * clock + 1; };
  for (std::uint32_t clock = 0; clock < traffic.clocks; ++clock) {
    pull.start = clock == 0 ? traffic.start : 0;
    pull.after.clear();
    if (clock > 0) pull.after.push_back({push_of(clock - 1), 0, workers});
    if (clock > traffic.staleness) pull.after.push_back({push_of(clock - 1 - traffic.staleness), workers, workers + shards});
    jobs.push_back(pull);
    push.start = traffic.compute;
    push.after = {{pull_of(clock), 0, workers}};
    jobs.push_back(push);
  }
}

}  // namespace shoal::sim
