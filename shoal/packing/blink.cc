#include "shoal/packing/blink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/packing/whole_trees.h"

namespace shoal::packing {

namespace {

constexpr std::size_t kMostCandidates = 200;
constexpr std::uint32_t kFinest = 8;              // parts of a unit
constexpr double kMostExponent = 600;             // e^this is a number; what costs more than that many cheapest trees is in none
constexpr double kWorthIt = 1.005;                // of a rate: below, equal rates are kept

// The weights of the header, as logarithms.
class Weights {
 public:
  Weights(const Network& network, double eps) : network_(network), eps_(eps), logs_(network.arcs().size()), load_(logs_.size(), 0) {
    const double m = static_cast<double>(logs_.size());
    std::fill(logs_.begin(), logs_.end(), std::log1p(eps) - (std::log1p(eps) + std::log(m)) / eps);
    scale_ = *std::max_element(logs_.begin(), logs_.end());
  }

  // y_a e^-scale: the scale follows the cheapest tree's cost, so that its arcs neither underflow nor overflow. It never falls, and
  // grows by at most 1 + eps a round.
  std::vector<double> prices() const {
    std::vector<double> prices(logs_.size());
    for (std::size_t a = 0; a < prices.size(); ++a) prices[a] = std::exp(std::min(logs_[a] - scale_, kMostExponent)) / network_.arcs()[a].rate;
    return prices;
  }
  // Of the cheapest tree, in those prices. Whether it costs 1 or more in y.
  bool spent(double cost) {
    scale_ += std::log(cost);
    return scale_ >= 0;
  }
  double take(const Load& tree) {                 // f, by which its weight grows
    double f = kFar;
    for (const auto& [arc, times] : tree) f = std::min(f, network_.arcs()[arc].rate / times);
    for (const auto& [arc, times] : tree) {
      const double part = f * times / network_.arcs()[arc].rate;
      logs_[arc] += std::log1p(eps_ * part);
      load_[arc] += part;
    }
    return f;
  }
  double fullest() const { return *std::max_element(load_.begin(), load_.end()); }

 private:
  static constexpr double kFar = std::numeric_limits<double>::infinity();
  const Network& network_;
  const double eps_;
  std::vector<double> logs_;                      // log(y_a c_a)
  std::vector<double> load_;                      // of its rate
  double scale_ = 0;
};

void sort_by_rate(std::vector<Tree>& trees) {
  std::stable_sort(trees.begin(), trees.end(), [](const Tree& a, const Tree& b) { return a.rate > b.rate; });
}

// As long as enough is left, at first many at a time.
Packing without_the_lightest(const Network& network, Packing packing, double enough) {
  for (std::size_t drop = packing.trees.size() / 2; drop > 0;) {
    std::vector<Tree> kept(packing.trees.begin(), packing.trees.end() - static_cast<std::ptrdiff_t>(std::min(drop, packing.trees.size() - 1)));
    Packing less = best_rates(network, packing.demand, packing.root, std::move(kept));
    if (less.rate >= enough && less.trees.size() < packing.trees.size())
      packing = std::move(less);
    else
      drop /= 2;
  }
  return packing;
}

}  // namespace

Packing pack_by_weights(const Network& network, Demand demand, Node root, double eps) {
  if (!(eps >= 0.005 && eps <= 0.25)) throw Error(Code::invalid_argument, fmt::format("eps of {}; 0.005 to 0.25", eps), "blink");
  const std::vector<Origin> from = origins(network, demand, root);
  if (demand == Demand::all_gather || demand == Demand::reduce_scatter) {
    throw Error(Code::unsupported, fmt::format("no trees are packed for {}", name(demand)), "blink", "all_reduce, broadcast or reduce");
  }
  Packing packing{demand, root, {}, 0, 0, {}};
  if (network.arcs().empty()) return packing;      // one host
  Weights weights(network, eps);
  CheapestTrees cheapest(network, demand);
  std::map<Load, std::size_t> known;               // trees that load the same arcs are one, whichever way round they are
  double all = 0;
  for (;;) {
    const std::vector<double> prices = weights.prices();
    cheapest.price(prices);
    Tree tree = cheapest.cheapest(from[0]);
    const double cost = cheapest.cost(tree);
    double worth = 0;
    for (std::size_t a = 0; a < prices.size(); ++a) worth += prices[a] * network.arcs()[a].rate;
    if (packing.bound == 0 || worth / cost < packing.bound) {
      packing.bound = worth / cost;
      packing.prices = prices;
    }
    const bool proved = all > 0 && all / weights.fullest() >= (1 - eps) * packing.bound;
    if (proved || (weights.spent(cost) && all > 0)) break;
    Load taken = load(network, tree);
    const double f = weights.take(taken);
    all += f;
    const auto [at, fresh] = known.emplace(std::move(taken), packing.trees.size());
    if (fresh) packing.trees.push_back(std::move(tree));
    packing.trees[at->second].rate += f;
  }
  const double over = weights.fullest();
  for (Tree& tree : packing.trees) tree.rate /= over;
  packing.rate = all / over;
  sort_by_rate(packing.trees);
  return packing;
}

Packing pack_blink(const Network& network, Demand demand, Node root, const Blink& blink) {
  Packing packing = pack_by_weights(network, demand, root, blink.eps);
  if (packing.trees.empty()) return packing;
  std::vector<Tree> candidates(packing.trees.begin(), packing.trees.begin() + static_cast<std::ptrdiff_t>(std::min(packing.trees.size(), kMostCandidates)));
  Packing best = best_rates(network, demand, root, packing.trees);
  const double enough = (1 - blink.loss) * best.rate;
  double slowest = packing.bound;
  for (const Arc& arc : network.arcs()) slowest = std::min(slowest, arc.rate);

  std::vector<Tree> chosen;
  const auto take = [&](double unit, bool once) {
    chosen.clear();
    const std::vector<std::uint32_t> copies = most_whole_trees(network, packing, candidates, unit, once);
    double rate = 0;
    for (std::size_t t = 0; t < copies.size(); ++t) {
      if (copies[t] == 0) continue;
      chosen.push_back(candidates[t]);
      rate += chosen.back().rate = unit * copies[t];
    }
    sort_by_rate(chosen);
    return rate;
  };
  double rate = take(slowest, true);
  for (std::uint32_t parts = 1; rate < enough && parts <= kFinest; ++parts) rate = take(slowest / parts, false);
  best = rate < enough ? without_the_lightest(network, std::move(best), enough) : best_rates(network, demand, root, chosen);
  packing.trees = std::move(chosen);
  if (rate < enough || best.rate > kWorthIt * rate) {
    packing.trees = std::move(best.trees);
    rate = best.rate;
  }
  packing.rate = rate;
  return packing;
}

}  // namespace shoal::packing
