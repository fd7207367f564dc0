#include "shoal/table/gate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "shoal/core/seed.h"

namespace shoal::table {

Clock clocks_to_add(Clock room, Nanoseconds own, Nanoseconds slow, Nanoseconds since) {
  if (own.count() <= 0 || slow.count() <= 0) return 0;
  Clock best = 0;
  double least = 0;
  for (Clock added = 0; added <= room; ++added) {
    const double end = static_cast<double>(since.count()) + static_cast<double>(added) * static_cast<double>(own.count());
    const double ticks = std::max(1.0, std::round(end / static_cast<double>(slow.count())));
    const double distance = std::abs(ticks * static_cast<double>(slow.count()) - end);
    if (added == 0 || distance < least) {
      best = added;
      least = distance;
    }
  }
  return best;
}

void DynamicGate::rises(Clock slowest, Instant now) {
  if (slowest <= slowest_) return;
  of_slowest_ = {now, slowest_ > 0 ? (now - of_slowest_.last) / (slowest - slowest_) : Nanoseconds{0}};
  slowest_ = slowest;
}

void DynamicGate::ticks(std::size_t which, Clock clock, const Dssp& policy, Instant now) {
  Worker& worker = workers_[which];
  worker.pace = {now, clock > 1 ? now - worker.pace.last : Nanoseconds{0}};
  const Clock least = policy.least, most = policy.most, ahead = clock - slowest_;
  worker.staleness = std::clamp(ahead, least, most);
  if (ahead <= least || ahead > most || clock < worker.granted) return;
  const Clock added = clocks_to_add(most - ahead + 1, worker.pace.interval, of_slowest_.interval, now - of_slowest_.last);
  worker.granted = clock + added;
  if (added == 0) worker.staleness = std::max(least, ahead - 1);
}

std::vector<std::uint32_t> sampled(const Pssp& policy, std::uint64_t seed, Clock clock, std::uint32_t worker, std::uint32_t workers) {
  constexpr std::uint32_t site = 0x70737370;  // "pssp"
  std::vector<std::uint32_t> others(workers);
  std::iota(others.begin(), others.end(), 0u);
  others.erase(others.begin() + worker);
  const std::size_t count = std::min<std::size_t>(policy.sampled, others.size());
  for (std::size_t i = 0; i < count; ++i) {   // Fisher and Yates's shuffle, as far as it is needed
    const double drawn = uniform(seed, static_cast<std::uint64_t>(clock), worker, site + static_cast<std::uint32_t>(i));
    std::swap(others[i], others[i + static_cast<std::size_t>(drawn * static_cast<double>(others.size() - i))]);
  }
  others.resize(count);
  return others;
}

}  // namespace shoal::table
