#include "shoal/nn/torch_error.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace shoal::nn {
namespace {

std::atomic<std::exception_ptr (*)(const Error&)> make_ours{nullptr};

}  // namespace

std::exception_ptr to_torch(const Error& error) {
  if (const auto make = make_ours.load()) {
    if (auto ours = make(error)) return ours;
  }
  return std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, error.what()));
}

std::shared_ptr<const Error> failure_of(const std::exception_ptr& thrown, const std::string& where) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return std::make_shared<const Error>(error);
  } catch (const c10::Error& error) {
    return std::make_shared<const Error>(Code::internal, error.what_without_backtrace(), where);
  } catch (const std::exception& error) {
    return std::make_shared<const Error>(Code::internal, error.what(), where);
  }
}

void errors_become(std::exception_ptr (*make)(const Error& error)) { make_ours = make; }

}  // namespace shoal::nn
