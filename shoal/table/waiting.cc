#include "shoal/table/waiting.h"

#include <optional>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/net/call.h"

namespace shoal::table {

void Waiting::until(const std::function<bool()>& ready, const Reader& reader, const std::string& what) const {
  std::uint64_t seen = reader.arrivals();
  if (ready()) return;
  std::optional<Error> in_vain;
  const auto why = [&] { return transport_->failure() ? transport_->failure() : failure_(); };
  const auto look_again = [&] {
    if (why()) return true;
    const std::uint64_t arrivals = reader.arrivals();
    try {
      return arrivals != std::exchange(seen, arrivals) && ready();
    } catch (const Error& error) {
      in_vain = error;
      return true;
    }
  };
  const bool over = net::wait_for(*transport_, look_again, patience_);
  if (in_vain) throw *in_vain;
  if (!over || why()) {
    if (ready()) return;
    if (const net::Failure failure = why()) throw Error(*failure);
  }
  if (!over) throw Error(Code::timeout, "waited " + std::to_string(std::chrono::ceil<std::chrono::seconds>(patience_).count()) + " s for " + what);
}

}  // namespace shoal::table
