#include "shoal/schedule/balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace shoal::schedule {

std::vector<std::uint32_t> balance(std::span<const double> costs, std::uint32_t parts) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return costs[a] > costs[b]; });
  using Load = std::pair<double, std::uint32_t>;  // and its part
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::uint32_t part = 0; part < parts; ++part) least.push({0, part});
  std::vector<std::uint32_t> part_of(costs.size());
  for (const std::uint32_t piece : order) {
    const auto [load, part] = least.top();
    least.pop();
    part_of[piece] = part;
    least.push({load + costs[piece], part});
  }
  return part_of;
}

}  // namespace shoal::schedule
