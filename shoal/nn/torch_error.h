// An Error in the classes that PyTorch's users catch. Threads: to_torch() any; lost_peers_become() once, before the first failure.
#pragma once

#include <exception>

#include "shoal/core/error.h"

namespace shoal::nn {

// torch.distributed.DistBackendError with our one line; for peer_lost what lost_peers_become() has set.
std::exception_ptr to_torch(const Error& error);

// Runs fn; what it throws becomes PyTorch's.
template <class Fn>
void translated(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    std::rethrow_exception(to_torch(error));
  }
}

// python/ makes them its own class (shoal.PeerLost); a program in C++ alone need not.
void lost_peers_become(std::exception_ptr (*make)(const Error& error));

}  // namespace shoal::nn
