#include "shoal/topo/infer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "shoal/core/error.h"
#include "shoal/topo/linkage.h"
#include "shoal/topo/switch_tree.h"

namespace shoal::topo {
namespace {

constexpr double kGap = 1.2;  // between the likeness of hosts of one group and of two

double sum(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<Flow> all_to_all(std::span<const std::uint32_t> hosts) {
  std::vector<Flow> flows;
  for (const std::uint32_t from : hosts) {
    for (const std::uint32_t to : hosts) {
      if (from != to) flows.push_back({from, to});
    }
  }
  return flows;
}

// Every host of both sides has a flow, and none many more than others.
std::vector<Flow> across(std::span<const std::uint32_t> from, std::span<const std::uint32_t> to) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i) flows.push_back({from[i % from.size()], to[i % to.size()]});
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
    refine(everyone, tree_.root());
    tree_.fit_latencies([this](std::uint32_t a, std::uint32_t b) { return (alone_.latency[a * count_ + b] + alone_.latency[b * count_ + a]) / 2; });
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
        const double total = sum(together_(flows));
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
        topology.links.push_back({from, to, alone(from, to), Nanoseconds(std::llround(alone_.latency[from * count_ + to] * 1e9))});
      }
    }
    return topology;
  }

  double expected(const std::vector<Flow>& flows) const { return sum(tree_.rates(flows)); }

  // What there is below `at` among `hosts`, which hang on it.
  void refine(const std::vector<std::uint32_t>& hosts, std::uint32_t at) {
    if (hosts.size() < 3) return;
    const auto flows = all_to_all(hosts);
    const auto measured = together_(flows), model = tree_.rates(flows);
    bool explained = true;
    Likeness likeness(hosts.size());
    for (std::size_t i = 0, flow = 0; i < hosts.size(); ++i) {
      for (std::size_t j = 0; j < hosts.size(); ++j) {
        if (i == j) continue;
        const double ratio = measured[flow] / model[flow];
        explained = explained && ratio >= kSlower;
        likeness.set(i, j, ratio);
        ++flow;
      }
    }
    if (explained) return;

    struct Group {
      std::vector<std::uint32_t> hosts;
      std::vector<Flow> out_flows, in_flows;
      double out, in, tightness;  // of what its hosts could send or take
    };
    std::vector<Group> groups;
    for (const auto& members : top_groups(likeness, kGap)) {
      if (members.size() < 2 || members.size() == hosts.size()) continue;
      Group group;
      std::vector<std::uint32_t> others;
      std::vector<bool> inside(hosts.size());
      for (const std::size_t member : members) inside[member] = true;
      for (std::size_t i = 0; i < hosts.size(); ++i) (inside[i] ? group.hosts : others).push_back(hosts[i]);
      group.out_flows = across(group.hosts, others);
      group.in_flows = across(others, group.hosts);
      group.out = sum(together_(group.out_flows));
      group.in = sum(together_(group.in_flows));
      group.tightness = std::min(group.out / expected(group.out_flows), group.in / expected(group.in_flows));
      groups.push_back(std::move(group));
    }
    // The tightest first: what its uplink explains needs no other.
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.tightness < b.tightness; });
    for (const Group& group : groups) {
      const bool out = group.out < kSlower * expected(group.out_flows), in = group.in < kSlower * expected(group.in_flows);
      std::uint32_t below = at;
      if (out || in) {
        double most_out = 0, most_in = 0;
        for (const std::uint32_t host : group.hosts) {
          most_out += up_[host];
          most_in += down_[host];
        }
        below = tree_.gather(group.hosts, at, out ? group.out : most_out, in ? group.in : most_in);
      }
      refine(group.hosts, below);
    }
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
  if (hosts.size() > kMostInferred) throw Error(Code::invalid_argument, fmt::format("{} hosts, at most {} are inferred", hosts.size(), kMostInferred), "network");
  if (alone.rate.size() != pairs || alone.latency.size() != pairs) throw Error(Code::invalid_argument, "figures of another number of hosts", "network");
  Topology found = Inference(hosts, alone, together).conclude();
  found.name = "measured";
  return found;
}

}  // namespace shoal::topo
