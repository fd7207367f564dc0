#include "shoal/topo/linkage.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shoal::topo {

double Likeness::of(std::size_t a, std::size_t b) const { return std::sqrt(value_[a * size_ + b] * value_[b * size_ + a]); }

std::vector<Partition> partitions(const Likeness& likeness, double gap) {
  struct Join {
    std::size_t into, from;
    double likeness;
  };
  const std::size_t size = likeness.size();
  std::vector<double> between(size * size);  // mean over the members of two groups, each called by its least member
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) between[a * size + b] = a == b ? 0 : likeness.of(a, b);
  }
  std::vector<std::size_t> alive(size), members(size, 1);
  std::iota(alive.begin(), alive.end(), std::size_t{0});
  std::vector<Join> joins;
  while (alive.size() > 1) {
    Join best{0, 0, -1};
    for (std::size_t i = 0; i < alive.size(); ++i) {
      for (std::size_t j = i + 1; j < alive.size(); ++j) {
        const double value = between[alive[i] * size + alive[j]];
        if (value > best.likeness) best = {alive[i], alive[j], value};
      }
    }
    for (const std::size_t other : alive) {
      const double mean = (static_cast<double>(members[best.into]) * between[best.into * size + other] +
                           static_cast<double>(members[best.from]) * between[best.from * size + other]) /
                          static_cast<double>(members[best.into] + members[best.from]);
      between[best.into * size + other] = between[other * size + best.into] = mean;
    }
    members[best.into] += members[best.from];
    std::erase(alive, best.from);
    joins.push_back(best);
  }

  std::vector<Partition> found;
  for (std::size_t kept = joins.size(); kept-- > 1;) {
    if (joins[kept - 1].likeness <= gap * joins[kept].likeness) continue;
    std::vector<std::size_t> least(size);
    std::iota(least.begin(), least.end(), std::size_t{0});
    for (std::size_t i = 0; i < kept; ++i) std::replace(least.begin(), least.end(), joins[i].from, joins[i].into);
    Partition& partition = found.emplace_back();
    for (std::size_t group = 0; group < size; ++group) {
      std::vector<std::size_t> members_of;
      for (std::size_t i = 0; i < size; ++i) {
        if (least[i] == group) members_of.push_back(i);
      }
      if (!members_of.empty()) partition.push_back(std::move(members_of));
    }
  }
  return found;
}

}  // namespace shoal::topo
