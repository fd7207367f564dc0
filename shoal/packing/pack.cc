#include "shoal/packing/pack.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "shoal/core/seed.h"
#include "shoal/packing/linear_program.h"

namespace shoal::packing {

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity(), kGap = 1e-6;
constexpr std::uint32_t kPartedSite = 0x7061636b;
constexpr std::uint32_t kMostRounds = 20000;
constexpr std::uint64_t kMostEntries = 1U << 27;  // of arborescences, that rounds along routes look at: some seconds

// The programme of pack.h. Rows: arcs (of a mirrored pair one), then origins. Column 0 is the rate; arcs' rates are divided by the highest.
class Master {
 public:
  Master(const Network& network, Demand demand, const std::vector<Origin>& origins)
      : network_(network), mirrored_(mirrored(network, demand)), row_(network.arcs().size()) {
    for (const Arc& arc : network.arcs()) unit_ = std::max(unit_, arc.rate);
    std::vector<double> limits;
    for (std::uint32_t a = 0; a < row_.size(); ++a) {
      const Arc& arc = network.arcs()[a];
      const bool again = mirrored_ && arc.reverse < a;
      row_[a] = again ? row_[arc.reverse] : static_cast<std::uint32_t>(limits.size());
      if (!again) limits.push_back(arc.rate / unit_);
    }
    first_origin_ = static_cast<std::uint32_t>(limits.size());
    limits.resize(limits.size() + origins.size(), 0);
    program_ = std::make_unique<LinearProgram>(limits);
    std::vector<std::pair<std::uint32_t, double>> rate;
    for (std::uint32_t o = 0; o < origins.size(); ++o) rate.emplace_back(first_origin_ + o, origins[o].share);
    program_->add(1, rate);
  }

  void add(std::uint32_t origin, Tree tree) {
    std::vector<std::pair<std::uint32_t, double>> column;
    for (const auto& [arc, times] : load(network_, tree)) {
      if (!mirrored_ || arc < network_.arcs()[arc].reverse) column.emplace_back(row_[arc], times);
    }
    column.emplace_back(first_origin_ + origin, -1);
    program_->add(0, column);
    trees_.push_back(std::move(tree));
  }

  void solve() { program_->solve(); }
  double rate() const { return program_->value() * unit_; }
  std::vector<double> prices() const {  // by arc
    const std::vector<double> rows = program_->prices();
    std::vector<double> prices(row_.size());
    for (std::size_t a = 0; a < row_.size(); ++a) prices[a] = mirrored_ ? rows[row_[a]] / 2 : rows[row_[a]];
    return prices;
  }
  std::vector<Tree> trees() const {     // those that carry something, by falling rate
    const std::vector<double> amounts = program_->amounts();
    std::vector<Tree> used;
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (amounts[t + 1] * unit_ <= 1e-9 * rate()) continue;
      used.push_back(trees_[t]);
      used.back().rate = amounts[t + 1] * unit_;
    }
    std::stable_sort(used.begin(), used.end(), [](const Tree& a, const Tree& b) { return a.rate > b.rate; });
    return used;
  }

 private:
  const Network& network_;
  const bool mirrored_;
  std::vector<std::uint32_t> row_;      // [arc]
  double unit_ = 0;
  std::uint32_t first_origin_ = 0;
  std::unique_ptr<LinearProgram> program_;
  std::vector<Tree> trees_;
};

}  // namespace

std::vector<double> parted(const Network& network, const std::vector<double>& prices, std::uint64_t round) {
  double hair = 0;
  for (std::size_t a = 0; a < prices.size(); ++a) hair += prices[a] * network.arcs()[a].rate;
  double all = 0;
  for (const Arc& arc : network.arcs()) all += arc.rate;
  hair = 1e-4 * hair / all;
  std::vector<double> moved = prices;
  for (std::uint32_t a = 0; a < moved.size(); ++a) moved[a] += hair * uniform(0, round, a, kPartedSite);
  return moved;
}

double bound(const Network& network, Demand demand, Node root, const std::vector<double>& prices) {
  double worth = 0, needed = 0;
  for (std::size_t a = 0; a < prices.size(); ++a) worth += prices[a] * network.arcs()[a].rate;
  CheapestTrees trees(network, demand);
  trees.price(prices);
  for (const Origin& origin : origins(network, demand, root)) needed += origin.share * trees.cost(trees.cheapest(origin));
  return worth / needed;
}

namespace {

// CLP's solution is true to its tolerance: what of it can be kept to exactly.
void settle(const Network& network, const std::vector<Origin>& from, Packing& packing) {
  std::vector<double> used(network.arcs().size(), 0), carried(from.size(), 0);
  for (const Tree& tree : packing.trees) {
    for (const auto& [arc, times] : load(network, tree)) used[arc] += times * tree.rate;
    carried[origin_of(from, tree)] += tree.rate;
  }
  double over = 1;
  for (std::size_t a = 0; a < used.size(); ++a) over = std::max(over, used[a] / network.arcs()[a].rate);
  for (Tree& tree : packing.trees) tree.rate /= over;
  packing.rate = kUnbounded;
  for (std::size_t o = 0; o < from.size(); ++o) packing.rate = std::min(packing.rate, carried[o] / over / from[o].share);
}

}  // namespace

Packing best_rates(const Network& network, Demand demand, Node root, std::vector<Tree> trees) {
  const std::vector<Origin> from = origins(network, demand, root);
  Master master(network, demand, from);
  for (Tree& tree : trees) {
    const std::uint32_t origin = origin_of(from, tree);
    master.add(origin, std::move(tree));
  }
  master.solve();
  Packing packing{demand, root, master.trees(), 0, 0, master.prices()};
  settle(network, from, packing);
  return packing;
}

Packing pack_exactly(const Network& network, Demand demand, Node root, const std::vector<Tree>& known) {
  const std::vector<Origin> from = origins(network, demand, root);
  Packing packing{demand, root, {}, 0, 0, {}};
  Master master(network, demand, from);
  CheapestTrees cheapest(network, demand);
  std::vector<double> prices;                     // at first every arc's worth alike
  for (const Arc& arc : network.arcs()) prices.push_back(1 / arc.rate);
  for (const Tree& tree : known) master.add(origin_of(from, tree), tree);
  if (!known.empty()) {
    master.solve();
    prices = master.prices();
  }
  const std::uint64_t hosts = network.hosts();
  const bool dear = network.has_routes() && !mirrored(network, demand) && (!from[0].root || from.size() > 1);  // a round takes arborescences of every host
  const std::uint64_t rounds = dear ? std::min<std::uint64_t>(kMostRounds, 1 + kMostEntries / (hosts * hosts * hosts)) : kMostRounds;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (const double proved = bound(network, demand, root, prices); round == 0 || proved < packing.bound) {
      packing.bound = proved;
      packing.prices = prices;
    }
    if (round > 0 && (master.rate() >= (1 - kGap) * packing.bound)) break;
    cheapest.price(parted(network, prices, round));
    for (std::uint32_t o = 0; o < from.size(); ++o) master.add(o, cheapest.cheapest(from[o]));
    master.solve();
    prices = master.prices();
  }
  packing.trees = master.trees();
  settle(network, from, packing);
  return packing;
}

}  // namespace shoal::packing
