// What a shared table sends, clock by clock, as jobs: each worker pulls rows from all shards, computes, and pushes its changes to them.
// Under stale synchronous parallel reads (Ho et al., NIPS 2013) a shard answers a read of clock c when it has everybody's changes of clock
// c - 1 - staleness. Rows are spread evenly over shards, as their keys are (table/placement.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/sim/run_program.h"

namespace shoal::sim {

struct TableTraffic {
  std::string name = "table";
  std::vector<topo::Node> workers, shards;  // hosts; none twice
  std::uint32_t clocks = 1, staleness = 0;
  std::uint64_t pulled = 0, pushed = 0;     // bytes a worker and clock: rows x their bytes
  double compute = 0;                       // seconds of a worker between pull and push
  double start = 0;                         // seconds
  std::uint32_t priority = 0;
};

// Appends them to `jobs`: a pull and a push a clock. Throws Error{invalid_argument} without workers or shards.
void add_jobs(const TableTraffic& traffic, std::vector<Job>& jobs);

}  // namespace shoal::sim
