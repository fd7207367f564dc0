// An Error in the classes that PyTorch's users catch. Threads: to_torch() any; errors_become() once, before the first failure.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "shoal/core/error.h"

namespace shoal::nn {

// What errors_become() has set makes of it, or torch.distributed.DistBackendError with our one line.
std::exception_ptr to_torch(const Error& error);

// Of whatever was thrown: our own as it is; of another where it says nothing of it, `where`.
std::shared_ptr<const Error> failure_of(const std::exception_ptr& thrown, const std::string& where);

// Runs fn; what it throws becomes PyTorch's.
template <class Fn>
void translated(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    std::rethrow_exception(to_torch(error));
  }
}

// python/ gives some of them classes of its own (shoal.PeerLost); a program in C++ alone need not. nullptr: the one above.
void errors_become(std::exception_ptr (*make)(const Error& error));

}  // namespace shoal::nn
