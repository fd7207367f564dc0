#include "shoal/nn/torch_error.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace shoal::nn {
namespace {

std::atomic<std::exception_ptr (*)(const Error&)> make_lost_peer{nullptr};

}  // namespace

std::exception_ptr to_torch(const Error& error) {
  const auto make = make_lost_peer.load();
  if (make && error.code() == Code::peer_lost) return make(error);
  return std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, error.what()));
}

void lost_peers_become(std::exception_ptr (*make)(const Error& error)) { make_lost_peer = make; }

}  // namespace shoal::nn
