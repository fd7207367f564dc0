// What an exchange plan sends, iteration by iteration, as jobs: the legs of every unit's way (exchange/leg.h), each by its own program. A host begins a
// unit's when its last gradient is there, with the unit's priority on the wire. What passes wait for (hybrid:G) stops them; what owners send back begins
// when all means have arrived and the optimizer has stepped. The next iteration begins on a host when all its means, and what came back, have arrived, the optimizer
// has stepped and what the ways make a member compute is done; so under Order::priority this is what it takes when nothing of the next forward pass is
// overlapped. Sizes that change from iteration to iteration (factors, rows) are those that the plan was made with.
//
// Of local steps (local:H, diloco:H:F) members come together in every H-th iteration, F fragments in turns: each leaves when it is due and the one before it has
// been taken over.
//
// Where members may be lost (faults.h) an iteration is one operation, as a step of training is.
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
  double start = 0;  // seconds
};

// Appends them to `jobs`. Throws Error{invalid_argument} where hosts are not as many as the plan's ranks, for a way that so many cannot go by, and for more than kMostScenarioJobs;
// Error{unsupported} for plans whose parameters are served by tables (ps): those are [[table]]s.
void add_jobs(const PlanTraffic& traffic, std::vector<Job>& jobs);

}  // namespace shoal::sim
