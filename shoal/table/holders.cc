#include "shoal/table/holders.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shoal::table {

void Holders::hear(std::size_t replica, const Header& header) {
  Host& host = hosts_[replica];
  host.announced = std::max(host.announced, header.clock);
  host.counted = std::max(host.counted, header.sequence);
  host.dropped = header.count;
  host.assigned += header.kind == Kind::assigned;
  host.flushes += header.kind == Kind::flushed;
}

bool Holders::loses(std::size_t replica) {
  const auto lives = [](const Host& host) { return !host.lost; };
  if (std::ranges::count_if(hosts_, lives) == 1) return false;  // nobody confirms what the last one did not
  hosts_[replica].lost = true;
  const std::size_t before = first_;
  while (first_ + 1 < hosts_.size() && hosts_[first_].lost) ++first_;
  return before != first_;
}

bool Holders::gone_before(std::uint64_t flushes) const {
  return std::ranges::any_of(hosts_, [flushes](const Host& host) { return !host.lost && host.gone && host.flushes < flushes; });
}

std::uint64_t Holders::most_flushes() const {
  std::uint64_t most = 0;
  for (const Host& host : hosts_) most = host.lost ? most : std::max(most, host.flushes);
  return most;
}

template <class Number>
Number Holders::least(Number Host::*member) const {
  Number number = std::numeric_limits<Number>::max();
  for (const Host& host : hosts_) number = host.lost ? number : std::min(number, host.*member);
  return number;
}
template Clock Holders::least(Clock Host::*) const;
template std::uint64_t Holders::least(std::uint64_t Host::*) const;

std::optional<std::vector<Key>> Holders::take_assigned() {
  if (assigning_.empty() || assigned_ >= least(&Host::assigned)) return std::nullopt;
  ++assigned_;
  std::vector<Key> keys = std::move(assigning_.front());
  assigning_.pop_front();
  return keys;
}

}  // namespace shoal::table
