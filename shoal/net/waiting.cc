#include "shoal/net/waiting.h"

#include <optional>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/net/call.h"

namespace shoal::net {

Nanoseconds Waiting::wait(const std::function<bool()>& ready, const Arrivals& whom, std::uint64_t seen, const char* what,
                          const std::string& of) const {
  const Instant begun = transport_->now();
  std::optional<Error> in_vain;
  const auto why = [&] { return transport_->failure() ? transport_->failure() : failure_(); };
  Failure seen_failure;
  const auto look_again = [&] {
    if ((seen_failure = why())) return true;
    const std::uint64_t arrivals = whom.arrivals();
    try {
      return arrivals != std::exchange(seen, arrivals) && ready();
    } catch (const Error& error) {
      in_vain = error;
      return true;
    }
  };
  const bool over = wait_for(*transport_, look_again, patience_);
  if (in_vain) throw *in_vain;
  if (!over || seen_failure) {
    if (ready()) return transport_->now() - begun;
    if (seen_failure) throw Error(*seen_failure);
  }
  if (!over) {
    throw Error(Code::timeout, "waited " + std::to_string(std::chrono::ceil<std::chrono::seconds>(patience_).count()) + " s for " + what + of);
  }
  return transport_->now() - begun;
}

}  // namespace shoal::net
