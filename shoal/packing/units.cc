#include "shoal/packing/units.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "shoal/core/seed.h"

namespace shoal::packing {

namespace {

constexpr std::uint32_t kPasses = 24, kPatience = 5;
constexpr double kFlattest = 8, kSteepest = 80;   // price of a full arc: e^this times an idle one's
constexpr double kProving = 40;                   // the same in prices()
constexpr double kHot = 0.75;                     // of the fullest arc: below, a hop stays where it is
constexpr std::uint64_t kUnitsSeed = 1;                // of the choice among equals: the same network, the same trees
constexpr std::uint32_t kSite = 0x66657773;

}  // namespace

Units::Units(const Network& network, Demand demand, const std::vector<Origin>& origins, std::uint32_t for_each_origin)
    : network_(network), demand_(demand), mirrored_(mirrored(network, demand)), origins_(origins),
      cheapest_(network, demand), into_(network.nodes()), units_(origins.size() * for_each_origin), busy_(network.arcs().size(), 0),
      is_behind_(network.hosts(), Behind::unknown) {
  for (std::uint32_t a = 0; a < network.arcs().size(); ++a) into_[network.arcs()[a].to].push_back(a);
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    units_[u].origin = u / for_each_origin;
    units_[u].size = origins_[units_[u].origin].share / for_each_origin;
    move(units_[u], kFlattest);
  }
  keep_best();
}

void Units::improve() {
  std::vector<std::uint32_t> order(units_.size());
  std::uint32_t idle = 0;
  for (std::uint32_t pass = 0; pass < kPasses && idle < kPatience; ++pass, ++idle) {
    const double steep = kFlattest + (kSteepest - kFlattest) * pass / (kPasses - 1);
    std::iota(order.begin(), order.end(), 0);
    for (auto k = static_cast<std::uint32_t>(order.size()); k > 1; --k) {
      std::swap(order[k - 1], order[random_words(kUnitsSeed, pass, k, kSite)[0] % k]);
    }
    for (const std::uint32_t u : order) {
      if (units_.size() > 1) move(units_[u], steep);
      for (Node host = 0; host < network_.hosts(); ++host) {
        if (host == units_[u].root) continue;
        if (goes_up(demand_) && !mirrored_) rehang(units_[u], host, true, steep);
        if (goes_down(demand_)) rehang(units_[u], host, false, steep);
      }
      if (keep_best()) idle = 0;
    }
  }
}

std::vector<Tree> Units::trees() const {
  std::vector<Tree> all;
  for (const Unit& unit : best_) all.push_back(tree(unit));
  return all;
}

void Units::put(Unit& unit, const Tree& tree) {
  unit.root = tree.root;
  unit.up.assign(network_.hosts(), {});
  unit.down.assign(network_.hosts(), {});
  for (const Hop& hop : tree.up) unit.up[hop.from] = hop;
  for (const Hop& hop : tree.down) unit.down[hop.to] = hop;
  carry(unit, 1);
}

void Units::move(Unit& unit, double steep) {
  if (!unit.down.empty()) carry(unit, -1);
  fullest_ = std::max(*std::max_element(busy_.begin(), busy_.end()), 1e-300);
  std::vector<double> prices(busy_.size());
  for (std::uint32_t a = 0; a < prices.size(); ++a) prices[a] = price(a, steep);
  ++moves_;
  cheapest_.price(prices);
  put(unit, cheapest_.cheapest(origins_[unit.origin]));
  fullest_ = *std::max_element(busy_.begin(), busy_.end());
}

void Units::rehang(Unit& unit, Node host, bool up, double steep) {
  Hop& hop = (up ? unit.up : unit.down)[host];
  if (!hot(hop)) return;
  carry(unit, hop, -1);
  ++moves_;
  hop = cheapest_hop(unit, host, up, steep);
  carry(unit, hop, 1);
}

// From a host that is not behind this one to it, or (up) from it to such a host: by Dijkstra from this one.
Hop Units::cheapest_hop(const Unit& unit, Node host, bool up, double steep) {
  for (const Node at : asked_) is_behind_[at] = Behind::unknown;
  asked_.clear();
  std::map<Node, std::pair<double, std::uint32_t>> reached{{host, {0, kNoArc}}};  // cost, by which arc
  using Entry = std::pair<double, Node>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(0, host);
  const auto other_end = [&](std::uint32_t a) { return up ? network_.arcs()[a].to : network_.arcs()[a].from; };
  for (;;) {
    const auto [cost, at] = open.top();
    open.pop();
    if (cost > reached[at].first) continue;
    if (network_.is_host(at) && at != host) {
      if (behind(unit, host, up, at)) continue;
      Hop hop{up ? host : at, up ? at : host, {}};
      for (Node node = at; node != host;) {
        const Arc& arc = network_.arcs()[reached[node].second];
        node = up ? arc.from : arc.to;
        if (node != host) hop.via.push_back(node);
      }
      if (up) std::reverse(hop.via.begin(), hop.via.end());
      return hop;
    }
    const auto step = [&](std::uint32_t a) {
      const double both = price(a, steep) + (mirrored_ ? price(network_.arcs()[a].reverse, steep) : 0);
      const Node next = other_end(a);
      const auto found = reached.find(next);
      if (found != reached.end() && found->second.first <= cost + both) return;
      reached[next] = {cost + both, a};
      open.emplace(cost + both, next);
    };
    if (up) {
      for (std::uint32_t a = network_.first(at); a < network_.first(at) + network_.from(at).size(); ++a) step(a);
    } else {
      for (const std::uint32_t a : into_[at]) step(a);
    }
  }
}

// Of the hosts that were asked about and those on their ways it is kept: all together cost no more than one look at every host, and the few
// neighbours that a search of a large grid meets cost their ways alone.
bool Units::behind(const Unit& unit, Node host, bool up, Node start) {
  const std::size_t first = asked_.size();
  Node at = start;
  while (at != host && at != unit.root && is_behind_[at] == Behind::unknown) {
    asked_.push_back(at);
    at = up ? unit.up[at].to : unit.down[at].from;
  }
  const Behind known = at == host ? Behind::yes : at == unit.root ? Behind::no : is_behind_[at];
  for (std::size_t k = first; k < asked_.size(); ++k) is_behind_[asked_[k]] = known;
  return known == Behind::yes;
}

void Units::carry(const Unit& unit, double sign) {
  for (Node host = 0; host < network_.hosts(); ++host) {
    if (host == unit.root) continue;
    if (!mirrored_ && goes_up(demand_)) carry(unit, unit.up[host], sign);
    if (goes_down(demand_)) carry(unit, unit.down[host], sign);
  }
}

void Units::carry(const Unit& unit, const Hop& hop, double sign) {
  const auto add = [&](std::uint32_t a) { busy_[a] = std::max(0.0, busy_[a] + sign * unit.size / network_.arcs()[a].rate); };
  along(network_, hop, [&](std::uint32_t a) {
    add(a);
    if (mirrored_) add(network_.arcs()[a].reverse);
  });
}

bool Units::hot(const Hop& hop) const {
  double most = 0;
  along(network_, hop, [&](std::uint32_t a) { most = std::max(most, busy_[a]); });
  return most >= kHot * fullest_;
}

double Units::price(std::uint32_t a, double steep) const {
  const double hair = 1 + 1e-3 * uniform(kUnitsSeed, moves_, a, kSite);  // parts equals
  return hair * std::exp(steep * (busy_[a] / fullest_ - 1)) / network_.arcs()[a].rate;
}

std::vector<double> Units::prices() const {
  std::vector<double> prices(best_busy_.size());
  for (std::size_t a = 0; a < prices.size(); ++a) {
    prices[a] = std::exp(kProving * (best_busy_[a] / best_time_ - 1)) / network_.arcs()[a].rate;
  }
  return prices;
}

bool Units::keep_best() {
  fullest_ = *std::max_element(busy_.begin(), busy_.end());
  if (best_time_ != 0 && fullest_ > best_time_ * (1 - 1e-9)) return false;
  best_time_ = fullest_;
  best_ = units_;
  best_busy_ = busy_;
  return true;
}

Tree Units::tree(const Unit& unit) const {
  if (mirrored_) return centred(network_.hosts(), in_order(unit.down, unit.root, false));
  Tree tree;
  tree.root = unit.root;
  if (goes_up(demand_)) tree.up = in_order(unit.up, unit.root, true);
  if (goes_down(demand_)) tree.down = in_order(unit.down, unit.root, false);
  return tree;
}

}  // namespace shoal::packing
