#include <algorithm>

#include "shoal/core/seed.h"
#include "shoal/packing/pack.h"
#include "shoal/packing/units.h"

namespace shoal::packing {

namespace {

constexpr double kEnough = 0.97;  // of the bound
constexpr std::uint32_t kMostTrees = 16;
constexpr double kLessIsRounding = 1e-6;
constexpr std::uint32_t kSwaps = 24000, kFewestArcs = 60;  // rounds x arcs: half a second, or less
constexpr std::uint32_t kMostJoin = 3, kSwapSite = 0x73776170;
constexpr double kMoved = 0.3, kWorse = 0.01;              // prices, up to thrice; the rate
constexpr std::uint64_t kFewSeed = 1;                         // the same network, the same trees

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

// Where so many trees are still short of the bound, the prices of the arcs they fill say which are missing: up to three of those join, as many of the
// slowest leave, and all get their best rates again. The next round goes on from there though it be a little worse, less so as rounds pass (simulated
// annealing: Kirkpatrick, Gelatt and Vecchi, Science 220, 1983); prices are moved at random, so that not the same trees join each time.
Packing swapped(const Network& network, Packing best) {
  const Origin origin = origins(network, best.demand, best.root).front();
  CheapestTrees cheapest(network, best.demand);
  const auto again = [&](std::vector<Tree> trees) { return best_rates(network, best.demand, best.root, std::move(trees)); };
  Packing current = again(best.trees);
  const std::uint32_t rounds = kSwaps / std::max<std::uint32_t>(static_cast<std::uint32_t>(network.arcs().size()), kFewestArcs);
  for (std::uint32_t round = 0; round < rounds && best.rate < kEnough * best.bound; ++round) {
    Packing now = current;
    for (std::uint32_t joins = 1 + round % kMostJoin; joins > 0; --joins) {
      for (std::uint32_t a = 0; a < now.prices.size(); ++a) {
        now.prices[a] *= 1 + kMoved * (round % 4) * uniform(kFewSeed, round * kMostJoin + joins, a, kSwapSite);
      }
      cheapest.price(parted(network, now.prices, round));
      now.trees.push_back(cheapest.cheapest(origin));
      now = again(std::move(now.trees));
    }
    while (now.trees.size() > kMostTrees) {
      now.trees.pop_back();
      now = again(std::move(now.trees));
    }
    if (now.rate < current.rate * (1 - kWorse * (rounds - round) / rounds)) continue;
    if (now.rate > best.rate) {
      best.trees = now.trees;
      best.rate = now.rate;
    }
    current = std::move(now);
  }
  return best;
}

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
  for (const std::uint32_t count : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 10U, 12U, 14U, kMostTrees}) {
    Units units(network, demand, from, count);
    units.improve();
    if (exact == nullptr) prove(network, best, units.prices());
    Packing found = best_rates(network, demand, root, distinct(units.trees()));
    if (found.rate <= best.rate * 1.005) continue;           // more trees must be worth their while
    best.trees = std::move(found.trees);
    best.rate = found.rate;
    if (best.rate >= kEnough * best.bound) break;
  }
  return exact != nullptr && from.size() == 1 ? swapped(network, std::move(best)) : best;
}

Packing along_routes(const topo::Topology& topology, const Packing& claimed, bool few, bool search) {
  std::vector<Tree> trees = claimed.trees;
  std::vector<std::pair<Node, Node>> pairs;
  for (Tree& tree : trees) {
    for (std::vector<Hop>* const hops : {&tree.up, &tree.down}) {
      for (Hop& hop : *hops) {
        hop.via.clear();
        pairs.emplace_back(hop.from, hop.to);
      }
    }
  }
  const Network network = search ? Network::along_routes(topology) : Network::along_routes(topology, pairs);
  const auto rated = [&](std::vector<Tree> some) { return best_rates(network, claimed.demand, claimed.root, std::move(some)); };
  Packing best = rated(trees);
  const double enough = few ? std::min(claimed.rate, kEnough * claimed.bound) : claimed.rate;
  if (!search || best.rate >= enough * (1 - kLessIsRounding)) return best;

  Packing exact = pack_exactly(network, claimed.demand, claimed.root, trees);
  if (!few) return exact;
  const std::vector<Origin> from = origins(network, claimed.demand, claimed.root);
  std::vector<std::uint32_t> kept(from.size(), 0);
  trees.clear();  // of the exact ones the heaviest
  for (const Tree& tree : exact.trees) {
    if (kept[origin_of(from, tree)]++ < kMostTrees) trees.push_back(tree);
  }
  if (Packing heaviest = rated(std::move(trees)); heaviest.rate > best.rate) best = std::move(heaviest);
  best.bound = exact.bound;
  best.prices = std::move(exact.prices);
  return from.size() == 1 ? swapped(network, std::move(best)) : best;
}

}  // namespace shoal::packing
