// What a model's parameters are to the exchange, the plan of its first iterations, and how members agree on the one that follows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "shoal/exchange/plan.h"
#include "shoal/nn/tables.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {

// In the order of `parameters`, which is taken for the order of their first use. Throws Error{unsupported} naming one that cannot be exchanged.
std::vector<exchange::TensorSpec> describe(const std::vector<NamedTensor>& parameters, const Tables& tables);

// Until measured figures are there, every member must make the same plan: from the model, the default link and the choice alone. A run
// that replays a saved plan begins so, too, with the choice of the run that saved it: the plan takes over at the iteration at which it was
// made, so that a replay has the bits of that run from the first step on. Throws Error{mismatch} where `saved` is of another model.
exchange::ExchangePlan first_plan(std::vector<exchange::TensorSpec> tensors, const exchange::Choice& choice,
                                  const std::optional<exchange::ExchangePlan>& saved, std::uint32_t ranks, std::uint32_t servers = 0);

// What rank 0 makes, on all members at once.
exchange::ExchangePlan agreed_plan(Session& session, const std::function<exchange::ExchangePlan()>& make);

}  // namespace shoal::nn
