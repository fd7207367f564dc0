// A model of the zoo (shoal/nn/models) as plans see it.
#pragma once

#include <string>

#include "shoal/exchange/model.h"

namespace shoal::app {

// Throws Error{invalid_argument} that lists the names if `name` is none of them.
exchange::Model known_model(const std::string& name);

}  // namespace shoal::app
