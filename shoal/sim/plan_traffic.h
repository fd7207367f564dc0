// What an exchange plan sends, iteration by iteration, as jobs: every unit's all-reduce begins on a host when its last gradient is there
// and has the unit's priority on the wire. The next iteration begins on a host when all its means have arrived and the optimizer has
// stepped; so under Order::priority this is what it takes when nothing of the next forward pass is overlapped. Where members may be lost
// (faults.h) an iteration is one operation, as a step of training is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/exchange/plan.h"
#include "shoal/sim/run_program.h"

namespace shoal::sim {

struct PlanTraffic {
  std::string name = "plan";
  exchange::ExchangePlan plan;
  std::vector<topo::Node> hosts;  // by rank
  std::uint32_t iterations = 1;
  double start = 0;               // seconds
};

// Appends them to `jobs`: one a unit and iteration. Throws Error{invalid_argument} where hosts are not as many as the plan's ranks, and
// Error{unsupported} for a unit whose way is no all-reduce.
void add_jobs(const PlanTraffic& traffic, std::vector<Job>& jobs);

}  // namespace shoal::sim
