#include "shoal/packing/arborescence.h"


namespace shoal::packing {

namespace {

constexpr std::uint32_t kNone = 0xffffffff;

struct Level {                               // one contraction: its nodes, its arcs, who enters whom
  std::uint32_t nodes, root;
  std::vector<WeightedArc> arcs;
  std::vector<std::uint32_t> below;          // [arc]: the arc of the level below it came from
  std::vector<std::uint32_t> entry;          // [node]: its cheapest arc
  std::vector<std::uint32_t> group;          // [node]: its node in the level above
};

void choose_entries(Level& level) {
  level.entry.assign(level.nodes, kNone);
  for (std::uint32_t a = 0; a < level.arcs.size(); ++a) {
    const WeightedArc& arc = level.arcs[a];
    if (arc.to == level.root || arc.from == arc.to) continue;
    std::uint32_t& entry = level.entry[arc.to];
    if (entry == kNone || arc.cost < level.arcs[entry].cost) entry = a;
  }
}

// Numbers the nodes of the next level in `group`, those of one cycle alike; how many there are.
std::uint32_t contract(Level& level) {
  std::vector<std::uint32_t> seen(level.nodes, kNone);
  level.group.assign(level.nodes, kNone);
  std::uint32_t groups = 0;
  for (std::uint32_t start = 0; start < level.nodes; ++start) {
    std::uint32_t at = start;
    while (at != level.root && seen[at] == kNone) {
      seen[at] = start;
      at = level.arcs[level.entry[at]].from;
    }
    if (at == level.root || seen[at] != start || level.group[at] != kNone) continue;
    for (; level.group[at] == kNone; at = level.arcs[level.entry[at]].from) level.group[at] = groups;  // a new cycle
    ++groups;
  }
  for (std::uint32_t& group : level.group) {
    if (group == kNone) group = groups++;
  }
  return groups;
}

Level next_level(const Level& level, std::uint32_t nodes) {
  Level next{nodes, level.group[level.root], {}, {}, {}, {}};
  for (std::uint32_t a = 0; a < level.arcs.size(); ++a) {
    const WeightedArc& arc = level.arcs[a];
    const std::uint32_t from = level.group[arc.from], to = level.group[arc.to];
    if (from == to || arc.to == level.root) continue;
    next.arcs.push_back({from, to, arc.cost - level.arcs[level.entry[arc.to]].cost});  // what it costs more than the entry it replaces
    next.below.push_back(a);
  }
  return next;
}

}  // namespace

std::vector<std::uint32_t> cheapest_arborescence(std::uint32_t nodes, std::uint32_t root, std::span<const WeightedArc> arcs) {
  std::vector<Level> levels{{nodes, root, {arcs.begin(), arcs.end()}, {}, {}, {}}};
  for (;;) {
    Level& level = levels.back();
    choose_entries(level);
    const std::uint32_t groups = contract(level);
    if (groups == level.nodes) break;
    Level next = next_level(level, groups);
    levels.push_back(std::move(next));
  }
  while (levels.size() > 1) {  // a contracted cycle is entered once: there its own entry goes
    const Level upper = std::move(levels.back());
    levels.pop_back();
    Level& level = levels.back();
    for (std::uint32_t node = 0; node < upper.nodes; ++node) {
      if (node == upper.root) continue;
      const std::uint32_t arc = upper.below[upper.entry[node]];
      level.entry[level.arcs[arc].to] = arc;
    }
  }
  return levels.front().entry;
}

}  // namespace shoal::packing
