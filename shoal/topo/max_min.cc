#include "shoal/topo/max_min.h"

#include <algorithm>
#include <limits>

namespace shoal::topo {

std::vector<double> max_min(std::span<const double> capacity, std::span<const std::vector<std::uint32_t>> paths) {
  std::vector<double> left(capacity.begin(), capacity.end()), rate(paths.size());
  std::vector<std::vector<std::uint32_t>> flows_of(capacity.size());
  std::vector<std::uint32_t> growing(capacity.size());  // of a link's flows
  for (std::uint32_t flow = 0; flow < paths.size(); ++flow) {
    for (const std::uint32_t link : paths[flow]) {
      flows_of[link].push_back(flow);
      ++growing[link];
    }
  }
  std::vector<bool> stays(paths.size());
  for (std::size_t open = paths.size(); open > 0;) {
    // The link that is full first; its flows get its share and leave the others what they do not take.
    std::size_t tightest = 0;
    double share = std::numeric_limits<double>::infinity();
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      if (growing[link] == 0 || left[link] / growing[link] >= share) continue;
      share = left[link] / growing[link];
      tightest = link;
    }
    for (const std::uint32_t flow : flows_of[tightest]) {
      if (stays[flow]) continue;
      stays[flow] = true;
      rate[flow] = share;
      --open;
      for (const std::uint32_t link : paths[flow]) {
        left[link] = std::max(left[link] - share, 0.0);
        --growing[link];
      }
    }
  }
  return rate;
}

}  // namespace shoal::topo
