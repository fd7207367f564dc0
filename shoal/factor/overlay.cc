#include "shoal/factor/overlay.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::factor {
namespace {

using Rank = Overlay::Rank;
using Targets = std::vector<std::vector<Rank>>;
constexpr double kFar = std::numeric_limits<double>::infinity();

struct Tree {
  std::vector<Rank> before;
  std::vector<unsigned> links;  // from the origin
  std::vector<Rank> order;      // in which members have it
  double total = 0;
};

// nearest: each member's targets, the cheapest first.
Tree tree_of(Rank origin, const Targets& nearest, const Overlay::Cost& cost, bool relays) {
  const auto size = static_cast<Rank>(nearest.size());
  Tree tree{std::vector<Rank>(size, origin), std::vector<unsigned>(size), {origin}, 0};
  std::vector<std::size_t> next(size);   // of a member's targets; those before have it
  std::vector<double> free(size, kFar);  // when a member that has it can send again
  free[origin] = 0;
  while (tree.order.size() < size) {
    Rank sender = size;
    std::pair best{0, kFar};
    for (const Rank at : tree.order) {
      if (!relays && at != origin) continue;
      while (next[at] < nearest[at].size() && free[nearest[at][next[at]]] < kFar) ++next[at];
      if (next[at] == nearest[at].size()) continue;
      const double seconds = cost(at, nearest[at][next[at]]);
      const std::pair found{std::ilogb(seconds), free[at] + seconds};
      if (sender == size || found < best) best = found, sender = at;
    }
    if (sender == size) {
      tree.total = kFar;  // nobody reaches the others
      break;
    }
    const Rank to = nearest[sender][next[sender]];
    tree.total += best.second + cost(sender, to);
    free[to] = free[sender] = best.second;
    tree.before[to] = sender;
    tree.links[to] = tree.links[sender] + 1;
    tree.order.push_back(to);
  }
  return tree;
}

Targets nearest_first(Targets targets, const Overlay::Cost& cost) {
  for (Rank rank = 0; rank < targets.size(); ++rank) {
    std::ranges::stable_sort(targets[rank], {}, [&](Rank to) { return cost(rank, to); });
  }
  return targets;
}

double total_of(const Targets& targets, const Overlay::Cost& cost) {
  const Targets nearest = nearest_first(targets, cost);
  double sum = 0;
  for (Rank origin = 0; origin < targets.size(); ++origin) {
    sum += tree_of(origin, nearest, cost, true).total;
  }
  return sum;
}

double one(Rank, Rank) { return 1; }

}  // namespace

Overlay::Overlay(Targets targets, const Cost& cost, bool relays) : targets_(std::move(targets)) {
  const std::size_t pairs = targets_.size() * targets_.size();
  const Targets nearest = nearest_first(targets_, cost);
  next_.resize(pairs);
  for (Rank origin = 0; origin < size(); ++origin) {
    const Tree tree = tree_of(origin, nearest, cost, relays);
    for (const Rank to : tree.order) {
      if (to != origin) next_[origin * size() + tree.before[to]].push_back(to);
    }
    before_.insert(before_.end(), tree.before.begin(), tree.before.end());
    links_.insert(links_.end(), tree.links.begin(), tree.links.end());
    total_ += tree.total;
  }
}

unsigned Overlay::diameter() const { return *std::max_element(links_.begin(), links_.end()); }

Overlay Overlay::full(Rank size) {
  Targets targets(size);
  for (Rank rank = 0; rank < size; ++rank) {
    for (Rank step = 1; step < size; ++step) targets[rank].push_back((rank + step) % size);  // not all to rank 0 first
  }
  return {std::move(targets), one, false};
}

// Halton's points to the base of 2 are 1/2, 1/4, 3/4, 1/8, 5/8, ... Where they alone do not reach everybody (of 16: 8, 4, 12 and 2) the last is 1.
Overlay Overlay::halton(Rank size) {
  std::vector<Rank> steps;
  const auto most = std::max<Rank>(1, std::bit_width(size - 1));  // ceil(log2 P)
  for (std::uint64_t n = 1; n < 4ull * size && steps.size() < most; ++n) {
    double point = 0, digit = 0.5;
    for (std::uint64_t rest = n; rest > 0; rest >>= 1, digit /= 2) point += digit * static_cast<double>(rest & 1);
    const auto step = static_cast<Rank>(point * size);
    if (step != 0 && std::ranges::find(steps, step) == steps.end()) steps.push_back(step);
  }
  const auto reached = [&] { return std::accumulate(steps.begin(), steps.end(), size, [](Rank a, Rank b) { return std::gcd(a, b); }) == 1; };
  if (!steps.empty() && !reached()) steps.back() = 1;
  Targets targets(size);
  for (Rank rank = 0; rank < size; ++rank) {
    for (const Rank step : steps) targets[rank].push_back((rank + step) % size);
  }
  return {std::move(targets), one, true};
}

Overlay Overlay::fitted(Rank size, Rank count, const Cost& cost) {
  if (count < 1) throw Error(Code::invalid_argument, "a member sends to nobody", "overlay", "at least one target each");
  if (count + 1 >= size) return {full(size).targets_, cost, true};
  Targets targets(size);
  for (Rank rank = 0; rank < size; ++rank) {
    for (Rank step = 1; step <= count; ++step) targets[rank].push_back((rank + step) % size);
  }
  // One target after another for the one that shortens all paths most, while any does. Looks are bounded: about a second.
  auto looks = static_cast<unsigned>(std::min(4096.0, 5e8 / std::pow(size, 3)));
  double best = total_of(targets, cost);
  for (bool better = true; std::exchange(better, false);) {
    for (Rank rank = 0; rank < size; ++rank) {
      for (Rank& target : targets[rank]) {
        const Rank before = target;
        Rank chosen = before;
        for (Rank other = 0; other < size && looks > 0; ++other) {
          if (other == rank || std::ranges::find(targets[rank], other) != targets[rank].end()) continue;
          --looks;
          target = other;
          const double sum = total_of(targets, cost);
          target = before;
          if (sum < best * (1 - 1e-9)) best = sum, chosen = other, better = true;
        }
        target = chosen;
      }
    }
  }
  return {std::move(targets), cost, true};
}

}  // namespace shoal::factor
