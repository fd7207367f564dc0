// What an exchange's ways remember from one iteration to the next (exchange/flow.h, Kept), as tensors for checkpoints. This member's own.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "shoal/exchange/exchange.h"

namespace shoal::nn {

// By name: "fc1.weight: residual". Views, valid until the plan changes. Between two iterations.
std::map<std::string, at::Tensor> kept_of(exchange::Exchange& exchange);
// Takes over those that its plan remembers, too.
void put_back_kept(exchange::Exchange& exchange, const std::map<std::string, at::Tensor>& kept);

}  // namespace shoal::nn
