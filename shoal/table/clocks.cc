#include "shoal/table/clocks.h"

#include <algorithm>
#include <utility>

namespace shoal::table {

std::vector<Clock> Clocks::each() const {
  std::vector<Clock> clocks;
  for (const Worker& worker : workers_) clocks.push_back(worker.arrived ? kLastClock : worker.completed);
  return clocks;
}

Clock Clocks::furthest(std::uint32_t first, std::uint32_t count) const {
  Clock clock = 0;
  for (std::uint32_t worker = first; worker < first + count; ++worker) clock = std::max(clock, workers_[worker].completed);
  return clock;
}

void Clocks::complete(std::uint32_t worker, Clock clock) { workers_[worker].completed = std::max(workers_[worker].completed, clock + 1); }

bool Clocks::nobody_waits() const {
  return std::ranges::none_of(workers_, [](const Worker& worker) { return worker.arrived.has_value(); });
}

bool Clocks::arrive(std::uint32_t worker, Clock clock) {
  workers_[worker].arrived = clock;
  return std::ranges::all_of(workers_, [](const Worker& other) { return other.arrived.has_value(); });
}

void Clocks::meet() {
  for (Worker& worker : workers_) slowest_ = std::max(slowest_, *std::exchange(worker.arrived, std::nullopt));
  for (Worker& worker : workers_) worker.completed = slowest_;
}

bool Clocks::rise(unsigned spare) {
  std::vector<Clock> completed;
  for (const Worker& worker : workers_) {
    if (!worker.arrived) completed.push_back(worker.completed);
  }
  const std::size_t done = workers_.size() - completed.size(), left = spare - std::min<std::size_t>(spare, done);
  const auto last = completed.begin() + static_cast<std::ptrdiff_t>(std::min(left, completed.size() - 1));
  std::ranges::nth_element(completed, last);
  return *last > std::exchange(slowest_, std::max(slowest_, *last));
}

}  // namespace shoal::table
