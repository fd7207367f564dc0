// A model of the zoo as plans see it: for `shoal plan` and Python's shoal.plan().
#pragma once

#include <string>

#include "shoal/exchange/model.h"

namespace shoal::nn::models {

// Throws Error{invalid_argument} that lists the names if `name` is none of them.
exchange::Model known_model(const std::string& name);

}  // namespace shoal::nn::models
