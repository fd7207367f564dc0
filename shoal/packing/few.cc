#include <algorithm>

#include "shoal/packing/pack.h"
#include "shoal/packing/units.h"

namespace shoal::packing {

namespace {

constexpr double kEnough = 0.97;  // of the bound

// Alike trees are one.
std::vector<Tree> distinct(const std::vector<Tree>& trees) {
  std::vector<Tree> found;
  for (const Tree& tree : trees) {
    const auto same = [&](const Tree& other) { return other.root == tree.root && other.up == tree.up && other.down == tree.down; };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(tree);
  }
  return found;
}

void prove(const Network& network, Packing& best, const std::vector<double>& prices) {
  const double proved = bound(network, best.demand, best.root, prices);
  if (best.bound != 0 && proved >= best.bound) return;
  best.bound = proved;
  best.prices = prices;
}

// Prices that are right where hosts are the bottleneck, where all arcs are, and where the slowest are.
void prove_roughly(const Network& network, Packing& best) {
  std::vector<double> hosts, alike, slow;
  for (const Arc& arc : network.arcs()) {
    hosts.push_back(network.is_host(arc.from) || network.is_host(arc.to) ? 1 : 0);
    alike.push_back(1);
    slow.push_back(1 / arc.rate);
  }
  for (const auto& prices : {hosts, alike, slow}) prove(network, best, prices);
}

}  // namespace

Packing pack_few(const Network& network, Demand demand, Node root, const Packing* exact) {
  const std::vector<Origin> from = origins(network, demand, root);
  Packing best;
  best.demand = demand;
  best.root = root;
  if (exact != nullptr) {
    best.bound = exact->bound;
    best.prices = exact->prices;
  } else {
    prove_roughly(network, best);
  }
  for (const std::uint32_t count : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 10U, 12U, 14U, 16U}) {
    Units units(network, demand, from, count);
    units.improve();
    if (exact == nullptr) prove(network, best, units.prices());
    Packing found = best_rates(network, demand, root, distinct(units.trees()));
    if (found.rate <= best.rate * 1.005) continue;           // more trees must be worth their while
    best.trees = std::move(found.trees);
    best.rate = found.rate;
    if (best.rate >= kEnough * best.bound) break;
  }
  return best;
}

}  // namespace shoal::packing
