// Makes the Failure that a handler gets, from an Error or from the words of one.
#pragma once

#include <memory>
#include <utility>

#include "shoal/net/transport.h"

namespace shoal::nn {

template <class... Words>
net::Failure failure_of(Words&&... words) {
  return std::make_shared<const Error>(std::forward<Words>(words)...);
}

}  // namespace shoal::nn
