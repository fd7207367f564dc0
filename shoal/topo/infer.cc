#include "shoal/topo/infer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/topo/linkage.h"
#include "shoal/topo/switch_tree.h"

namespace shoal::topo {
namespace {

constexpr double kGap = 1.12;  // between the likeness of hosts of one group and of two

double sum(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Each host to each other, first all at once, then in matchings: in the k-th every host to the k-th after it. In an order that has nothing
// to do with racks, so that no matching stays inside them.
std::vector<std::vector<Flow>> rounds_among(std::vector<std::uint32_t> hosts) {
  for (std::size_t i = hosts.size(); i-- > 1;) std::swap(hosts[i], hosts[random_words(i, 0, 0, 0)[0] % (i + 1)]);
  std::vector<std::vector<Flow>> rounds(1);
  for (std::size_t k = 1; k < hosts.size(); ++k) {
    std::vector<Flow>& matching = rounds.emplace_back();
    for (std::size_t i = 0; i < hosts.size(); ++i) matching.push_back({hosts[i], hosts[(i + k) % hosts.size()]});
    rounds[0].insert(rounds[0].end(), matching.begin(), matching.end());
  }
  return rounds;
}

// Every host of both sides has a flow, and none many more than others.
std::vector<Flow> across(std::span<const std::uint32_t> from, std::span<const std::uint32_t> to) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i)
    flows.push_back({from[i % from.size()], to[i % to.size()]});
  return flows;
}

class Inference {
 public:
  Inference(const std::vector<std::string>& hosts, const PairsAlone& alone, const Together& together)
      : names_(hosts), alone_(alone), together_(together), count_(static_cast<std::uint32_t>(hosts.size())) {}

  Topology conclude() {
    std::vector<std::uint32_t> everyone(count_);
    std::iota(everyone.begin(), everyone.end(), 0);
    if (count_ < 3 || !measure_own_links(everyone)) return lines();
    tree_ = SwitchTree(up_, down_);
    refine(everyone);
    tree_.fit_latencies([this](std::uint32_t a, std::uint32_t b) {
      return (alone_.latency[a * count_ + b] + alone_.latency[b * count_ + a]) / 2;
    });
    return tree_.to_topology(names_);
  }

 private:
  double alone(std::uint32_t from, std::uint32_t to) const { return alone_.rate[from * count_ + to]; }

  // False where every host reaches all others at once as fast as one after another: nothing is shared.
  bool measure_own_links(std::span<const std::uint32_t> everyone) {
    bool shared = false;
    for (const bool out : {true, false}) {
      std::vector<double>& rates = out ? up_ : down_;
      for (const std::uint32_t host : everyone) {
        std::vector<Flow> flows;
        double pairs = 0, best = 0;
        for (const std::uint32_t other : everyone) {
          if (other == host) continue;
          flows.push_back(out ? Flow{host, other} : Flow{other, host});
          const double rate = alone(flows.back().from, flows.back().to);
          pairs += rate;
          best = std::max(best, rate);
        }
        const double total = sum(measured(std::move(flows)).rates);
        shared = shared || total < kSlower * pairs;
        rates.push_back(std::max(total, best));
      }
    }
    return shared;
  }

  Topology lines() const {
    Topology topology;
    topology.hosts = names_;
    for (std::uint32_t from = 0; from < count_; ++from) {
      for (std::uint32_t to = 0; to < count_; ++to) {
        if (from == to) continue;
        topology.links.push_back(
            {from, to, alone(from, to), Nanoseconds(std::llround(alone_.latency[from * count_ + to] * 1e9))});
      }
    }
    return topology;
  }

  struct Round {
    std::vector<Flow> flows;
    std::vector<double> rates;
  };
  Round measured(std::vector<Flow> flows) const {
    auto rates = together_(flows);
    if (rates.size() != flows.size())
      throw Error(Code::invalid_argument, fmt::format("{} rates of {} flows that send together", rates.size(), flows.size()), "network", "one for each flow");
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (!std::isfinite(rates[i]) || rates[i] <= 0)
        throw Error(Code::invalid_argument, fmt::format("{} is no rate of a flow from host {} to {}", rates[i], names_[flows[i].from], names_[flows[i].to]),
                    "network", "bytes a second, above 0");
    }
    return {std::move(flows), std::move(rates)};
  }
  // Of what the network found so far would give.
  double share(const Round& round) const { return sum(round.rates) / sum(tree_.rates(round.flows)); }

  // What there is among `hosts`, all of which hang on one switch: groups are split off until what was measured is explained.
  void refine(const std::vector<std::uint32_t>& hosts) {
    if (hosts.size() < 3) return;
    std::vector<Round> rounds;
    for (auto& flows : rounds_among(hosts)) rounds.push_back(measured(std::move(flows)));
    std::map<std::vector<std::uint32_t>, Crossing> crossings;
    std::vector<std::vector<std::uint32_t>> found;
    for (bool split = true; split;) {
      split = false;
      const auto likeness = likeness_of(hosts, rounds);
      if (!likeness) break;
      for (const Partition& partition : partitions(*likeness, kGap)) {
        while (const auto group = tightest(hosts, partition, crossings)) {
          found.push_back(*group);
          split = true;
        }
      }
    }
    for (const auto& group : found) refine(group);
  }

  // What pairs of hosts got, of what the network found so far gives them: once among all, once in a matching. Empty if that is enough.
  std::optional<Likeness> likeness_of(const std::vector<std::uint32_t>& hosts, const std::vector<Round>& rounds) const {
    std::vector<std::size_t> place(count_);
    for (std::size_t i = 0; i < hosts.size(); ++i) place[hosts[i]] = i;
    std::vector<double> product(hosts.size() * hosts.size(), 1);
    bool explained = true;
    for (const Round& round : rounds) {
      const auto model = tree_.rates(round.flows);
      for (std::size_t i = 0; i < model.size(); ++i) {
        const double ratio = round.rates[i] / model[i];
        explained = explained && ratio >= kSlower;
        product[place[round.flows[i].from] * hosts.size() + place[round.flows[i].to]] *= ratio;
      }
    }
    if (explained) return std::nullopt;
    Likeness likeness(hosts.size());
    for (std::size_t a = 0; a < hosts.size(); ++a) {
      for (std::size_t b = 0; b < hosts.size(); ++b) likeness.set(a, b, product[a * hosts.size() + b]);
    }
    return likeness;
  }

  // What a group gets across its border, measured once.
  struct Crossing {
    Round out, in;
  };
  // Hangs a group on a switch of its own: the one that gets least of what the network found so far gives it, if that is little enough. Both
  // sides of a bottleneck may be groups; the smaller one it is then. Only hosts that hang on one switch are a group.
  std::optional<std::vector<std::uint32_t>> tightest(const std::vector<std::uint32_t>& hosts, const Partition& partition,
                                                     std::map<std::vector<std::uint32_t>, Crossing>& crossings) {
    const std::pair<const std::vector<std::uint32_t>, Crossing>* best = nullptr;
    double least = kSlower;
    for (const auto& members : partition) {
      if (members.size() < 2 || members.size() == hosts.size()) continue;
      std::vector<std::uint32_t> group, others;
      std::vector<bool> inside(hosts.size());
      for (const std::size_t member : members) inside[member] = true;
      for (std::size_t i = 0; i < hosts.size(); ++i) (inside[i] ? group : others).push_back(hosts[i]);
      if (std::any_of(group.begin(), group.end(),
                      [&](std::uint32_t host) { return tree_.parent(host) != tree_.parent(group[0]); }))
        continue;
      auto known = crossings.find(group);
      if (known == crossings.end())
        known = crossings.emplace(group, Crossing{measured(across(group, others)), measured(across(others, group))}).first;
      const double got = std::min(share(known->second.out), share(known->second.in));
      const bool other_side = best != nullptr && group.size() < best->first.size() && got < kSlower && got * kSlower < least;
      if (got >= least && !other_side) continue;
      least = got;
      best = &*known;
    }
    if (best == nullptr) return std::nullopt;
    const auto& [group, crossing] = *best;
    double out = 0, in = 0;  // no less than what its hosts can send and take, unless it was
    for (const std::uint32_t host : group) {
      out += up_[host];
      in += down_[host];
    }
    if (share(crossing.out) < kSlower) out = sum(crossing.out.rates);
    if (share(crossing.in) < kSlower) in = sum(crossing.in.rates);
    tree_.gather(group, tree_.parent(group[0]), out, in);
    return group;
  }

  const std::vector<std::string>& names_;
  const PairsAlone& alone_;
  const Together& together_;
  const std::uint32_t count_;
  std::vector<double> up_, down_;
  SwitchTree tree_;
};

}  // namespace

Topology infer(const std::vector<std::string>& hosts, const PairsAlone& alone, const Together& together) {
  const std::size_t pairs = hosts.size() * hosts.size();
  if (hosts.size() > kMostInferred)
    throw Error(Code::invalid_argument, fmt::format("{} hosts, at most {} are inferred", hosts.size(), kMostInferred),
                "network");
  if (alone.rate.size() != pairs || alone.latency.size() != pairs)
    throw Error(Code::invalid_argument, "figures of another number of hosts", "network");
  Topology found = Inference(hosts, alone, together).conclude();
  found.name = "measured";
  return found;
}

}  // namespace shoal::topo
