#include "shoal/table/clocks.h"

#include <algorithm>
#include <utility>

namespace shoal::table {

std::vector<Clock> Clocks::each() const {
  std::vector<Clock> clocks;
  for (const Worker& worker : workers_) clocks.push_back(worker.arrived || worker.lost ? kLastClock : worker.completed);
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

bool Clocks::all_arrived() const {
  const auto is_there = [](const Worker& worker) { return worker.lost || worker.arrived; };
  return std::ranges::all_of(workers_, is_there) && !std::ranges::all_of(workers_, &Worker::lost);
}

void Clocks::meet() {
  slowest_ = std::max(slowest_, floor_);
  for (Worker& worker : workers_) {
    if (!worker.lost) slowest_ = std::max(slowest_, *std::exchange(worker.arrived, std::nullopt));
  }
  for (Worker& worker : workers_) worker.completed = worker.lost ? worker.completed : slowest_;
}

void Clocks::begin_at(Clock clock) {
  slowest_ = clock;
  for (Worker& worker : workers_) worker.completed = clock;
}

void Clocks::lose(std::uint32_t worker, Clock completed) {
  workers_[worker].lost = true;
  workers_[worker].arrived.reset();
  workers_[worker].completed = std::min(workers_[worker].completed, completed);
}

bool Clocks::rise(unsigned spare) {
  std::vector<Clock> completed;  // who waits at a barrier has completed all, and is not one of the spared
  for (const Worker& worker : workers_) {
    if (!worker.lost && !worker.arrived) completed.push_back(worker.completed);
  }
  if (completed.empty()) return false;
  const auto last = completed.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(spare, completed.size() - 1));
  std::ranges::nth_element(completed, last);
  return *last > std::exchange(slowest_, std::max(slowest_, *last));
}

void Clocks::pack(Packed& packed) const {
  packed << static_cast<Key>(slowest_) << static_cast<Key>(floor_);
  for (const Worker& worker : workers_) {
    packed << static_cast<Key>(worker.completed) << worker.lost << worker.arrived.has_value() << static_cast<Key>(worker.arrived.value_or(0));
  }
}

void Clocks::unpack(Unpacked& packed) {
  slowest_ = static_cast<Clock>(packed.number());
  floor_ = static_cast<Clock>(packed.number());
  for (Worker& worker : workers_) {
    worker.completed = static_cast<Clock>(packed.number());
    worker.lost = packed.number() != 0;
    const bool waits = packed.number() != 0;
    const auto arrived = static_cast<Clock>(packed.number());
    worker.arrived = waits ? std::optional(arrived) : std::nullopt;
  }
}

}  // namespace shoal::table
