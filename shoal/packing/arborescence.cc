#include "shoal/packing/arborescence.h"

#include <algorithm>

namespace shoal::packing {

namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// Nodes, then groups of nodes that were contracted, in the order in which that happened. What is not in a group is on top.
class ArborescenceSearch {
 public:
  ArborescenceSearch(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs)
      : arcs_(arcs), entries_(nodes), entry_(nodes), above_(nodes, kNone), top_(nodes), reaches_(nodes), cheapest_(nodes) {
    std::vector<std::uint32_t> count(nodes, 0);
    for (const WeightedArc& arc : arcs) ++count[arc.to];
    for (std::uint32_t node = 0; node < nodes; ++node) {
      entries_[node].reserve(count[node]);
      top_[node] = node;
    }
    for (std::uint32_t a = 0; a < arcs.size(); ++a) {
      if (arcs[a].to != root && arcs[a].from != arcs[a].to) entries_[arcs[a].to].push_back({arcs[a].cost, a});
    }
    reaches_[root] = true;
    for (std::uint32_t node = 0; node < nodes; ++node) grow(node);
  }

  std::vector<std::uint32_t> entries() {
    const auto nodes = static_cast<std::uint32_t>(top_.size());
    for (auto group = static_cast<std::uint32_t>(entry_.size()); group-- > nodes;) {  // it is entered once: there its own entry goes
      std::uint32_t inner = arcs_[entry_[group].arc].to;
      while (above_[inner] != group) inner = above_[inner];
      entry_[inner] = entry_[group];
    }
    std::vector<std::uint32_t> all(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) all[node] = entry_[node].arc;
    return all;
  }

 private:
  struct Entry {
    double cost = 0;                         // more than the entries inside of the group that it makes needless
    std::uint32_t arc = kNone;
  };

  // Backwards from a node, each time by the cheapest entry, until the root reaches what we came from.
  void grow(std::uint32_t start) {
    std::vector<std::uint32_t> path{top_[start]};
    for (;;) {
      const std::uint32_t at = path.back();
      if (reaches_[at]) break;
      entry_[at] = *std::min_element(entries_[at].begin(), entries_[at].end(), [](const Entry& a, const Entry& b) { return a.cost < b.cost; });
      const std::uint32_t before = top_[arcs_[entry_[at].arc].from];
      const auto cycle = std::find(path.begin(), path.end(), before);
      if (cycle == path.end()) {
        path.push_back(before);
        continue;
      }
      const std::uint32_t group = contract({cycle, path.end()});
      path.erase(cycle, path.end());
      path.push_back(group);
    }
    for (const std::uint32_t node : path) reaches_[node] = true;
  }

  // Of the entries from one node the cheapest is kept.
  std::uint32_t contract(const std::vector<std::uint32_t>& cycle) {
    const auto group = static_cast<std::uint32_t>(entry_.size());
    for (const std::uint32_t member : cycle) above_[member] = group;
    for (std::uint32_t& top : top_) {
      if (above_[top] == group) top = group;
    }
    std::vector<Entry> kept;
    for (const std::uint32_t member : cycle) {
      for (const Entry& entry : entries_[member]) {
        const std::uint32_t from = arcs_[entry.arc].from;
        if (top_[from] == group) continue;
        const Entry now{entry.cost - entry_[member].cost, entry.arc};
        std::uint32_t& known = cheapest_[from];
        if (known >= kept.size() || arcs_[kept[known].arc].from != from) {
          known = static_cast<std::uint32_t>(kept.size());
          kept.push_back(now);
        } else if (now.cost < kept[known].cost) {
          kept[known] = now;
        }
      }
      entries_[member] = {};
    }
    entries_.push_back(std::move(kept));
    entry_.emplace_back();
    above_.push_back(kNone);
    reaches_.push_back(false);
    return group;
  }

  const std::span<const WeightedArc> arcs_;
  std::vector<std::vector<Entry>> entries_;  // [node or group]: arcs from outside of it
  std::vector<Entry> entry_;                 // [node or group]: the one taken
  std::vector<std::uint32_t> above_;         // [node or group]: the group that it is in
  std::vector<std::uint32_t> top_;           // [node]
  std::vector<bool> reaches_;                // [node or group]: the root it, by entries taken
  std::vector<std::uint32_t> cheapest_;      // [node]: its place in what contract() keeps
};

}  // namespace

std::vector<std::uint32_t> cheapest_arborescence(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs) {
  return ArborescenceSearch(nodes, root, arcs).entries();
}

}  // namespace shoal::packing
