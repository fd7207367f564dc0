// Chooses a plan: per tensor the way, and for all of them packing, slices and order, so that an iteration is predicted to be shortest.
#pragma once

#include <vector>

#include "shoal/exchange/plan.h"

namespace shoal::exchange {

// What a member's own work takes, measured while all members work: those that share cores see what is left of them. The mean of the slowest machine's members.
struct Compute {
  double forward_seconds = 0, backward_seconds = 0;  // 0: not measured
  double multiply_rate = 0;                          // floating-point operations/s of products of others' rows, where they are slowest; 0: not measured, no factors
  double step_seconds = 0;                           // between the passes: the optimizer's step and what the script does
  double operation_seconds = 0;                      // what one more unit takes of an iteration, whatever hides: the time of processors that members share
  double parameter_seconds = 20e-6;                  // what one more parameter takes of an iteration in which each is stepped by itself
  bool crowded = false;                              // several members to a core, and none is idle: what hides from one takes another's time
  double processor_seconds = 0;                      // of an iteration by whole gradients, in which the cores of the machine that has most to do were busy; 0: not measured
  double own_rate = 0;                               // as multiply_rate, of products of own rows, which backward_seconds have; 0: not measured
};

// Deterministic in its arguments. Without a measured backward pass there is nothing to hide behind: small tensors are packed, in order of
// production, and nothing goes by factors whose rows are not known. Forward waits layer by layer (Order::priority) only where `forward_at` of
// every tensor is known.
// Of local steps (choice.rounds) differences of parameters travel: whole, after all of them are there, each fragment's in a turn of its own.
// Of `ranks` the last ones may be servers: then a whole gradient goes by their way, or by the workers' cheapest all-reduce, whichever is shorter.
// Throws Error{invalid_argument} if an override of `choice` names no tensor, or a way has another number of servers.
ExchangePlan make_plan(std::vector<TensorSpec> tensors, std::uint32_t ranks, const collective::LinkModel& link, const Compute& compute = {},
                       const Choice& choice = {}, std::uint32_t servers = 0);

}  // namespace shoal::exchange
