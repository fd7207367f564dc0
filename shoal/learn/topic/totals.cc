#include "shoal/learn/topic/totals.h"

#include <algorithm>
#include <chrono>

namespace shoal::learn::topic {

Totals::Totals(table::Worker worker, std::span<const std::int64_t> own, unsigned staleness)
    : staleness_(staleness),
      table_(worker.open<std::int64_t>({.name = "topic-totals", .width = std::min(kWidth, own.size()), .consistency = table::Ssp{staleness}})),
      counts_(own.begin(), own.end()), reads_(slots()) {
  for (Read& read : reads_) {
    read.rows.resize(padded());
    read.own.resize(padded());
  }
  // What everybody begins with is beside the clocks: in rows of its own, complete at a barrier.
  values_.resize(padded());
  std::ranges::copy(counts_, values_.begin());
  table_.add(keys_of(slots()), values_);
  table_.barrier();
  table_.read(keys_of(slots()), values_);
  std::copy_n(values_.begin(), counts_.size(), counts_.begin());
  before_ = counts_;
}

std::size_t Totals::memory(std::size_t topics, unsigned staleness) {
  return topics * (3 * sizeof(std::int64_t) + slots(staleness) * (sizeof(std::int64_t) + sizeof(std::int32_t)));
}

std::size_t Totals::table_memory(std::size_t topics, unsigned staleness, std::uint32_t members, std::uint32_t workers) {
  const std::size_t kept = slots(staleness) + 1, served = (kept + members - 1) / members;
  return topics * sizeof(std::int64_t) * (kept + served + 3 * std::size_t{workers});
}

// slots() itself is that of what everybody begins with.
std::span<const table::Key> Totals::keys_of(std::size_t slot) {
  keys_.resize(rows());
  for (std::size_t row = 0; row < rows(); ++row) keys_[row] = slot * rows() + row;
  return keys_;
}

// What has come to that slot since it was read before.
void Totals::take_in(std::size_t slot) {
  Read& read = reads_[slot];
  table_.read(keys_of(slot), values_);
  for (std::size_t topic = 0; topic < counts_.size(); ++topic) {
    const std::int64_t came = values_[topic] - read.rows[topic] - read.own[topic];
    counts_[topic] += came;
    before_[topic] += came;
  }
  std::ranges::fill(read.own, 0);
  read.rows.swap(values_);
}

void Totals::tick() {
  const table::Clock clock = table_.clock();
  ++ticks_;
  const auto begun = std::chrono::steady_clock::now();
  // What this clock brought leaves, and is remembered until it comes back among that of all.
  std::vector<std::int32_t>& own = reads_[slot_of(clock)].own;
  for (std::size_t topic = 0; topic < counts_.size(); ++topic) {
    values_[topic] = counts_[topic] - before_[topic];
    own[topic] = static_cast<std::int32_t>(values_[topic]);
  }
  std::fill(values_.begin() + static_cast<std::ptrdiff_t>(counts_.size()), values_.end(), 0);
  before_ = counts_;
  table_.add(keys_of(slot_of(clock)), values_);
  table_.tick();
  // The next clock sees what all did up to `staleness` clocks before it.
  if (clock >= static_cast<table::Clock>(staleness_)) take_in(slot_of(clock - static_cast<table::Clock>(staleness_)));
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void Totals::settle() {
  table_.barrier();
  for (std::size_t slot = 0; slot < slots(); ++slot) take_in(slot);
  table_.barrier();  // nobody writes to what others have not read yet
}

}  // namespace shoal::learn::topic
