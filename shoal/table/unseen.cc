#include "shoal/table/unseen.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace shoal::table {

bool Unseen::fits(std::span<const Amount> amounts, double bound) const {
  std::unordered_map<Key, double> of_call;  // its increments of one row leave together
  for (const Amount& amount : amounts) of_call[amount.key] += amount.magnitude;
  return std::ranges::all_of(of_call, [&](const auto& row) { return sums_.fits({row.first, row.second}, bound); });
}

void Unseen::add(std::size_t shard, const Amount& amount) {
  sums_.add(amount);
  open_[shard].push_back(amount);
}

void Unseen::leaves(std::size_t shard, std::uint64_t sequence) {
  if (!open_[shard].empty()) parts_[shard].push_back({sequence, std::exchange(open_[shard], {})});
}

void Unseen::seen(std::size_t shard, std::uint64_t sequence) {
  std::deque<Part>& parts = parts_[shard];
  for (; !parts.empty() && parts.front().sequence <= sequence; parts.pop_front()) {
    for (const Amount& amount : parts.front().amounts) sums_.remove(amount);
  }
}

bool Unseen::crowded() const {
  return std::ranges::any_of(parts_, [](const auto& parts) { return parts.size() >= kMostParts; });
}

}  // namespace shoal::table
