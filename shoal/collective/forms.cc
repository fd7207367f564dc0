#include "shoal/collective/forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

#include "shoal/collective/build_mesh.h"
#include "shoal/collective/build_rings.h"
#include "shoal/collective/build_trees.h"
#include "shoal/collective/certificate.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/hosts.h"
#include "shoal/core/error.h"
#include "shoal/topo/grid_form.h"
#include "shoal/topo/routes.h"

namespace shoal::collective {

namespace {

constexpr std::uint32_t kMostSteps = 1U << 14;  // of a search for one circuit, as NCCL bounds its own
constexpr double kFaster = 1 + 1e-9;            // less is rounding

// What passes come to: seconds that the fullest link direction needs for one unit of data. A ring along dimension k carries 2 (pk - 1) / pk of what the
// dimensions before it left of a pass, in its direction; a folded ring, of a dimension that does not wrap, the same in both; members that meet in the middle
// of a line once what was left, in both.
double seconds_of(const std::vector<Dimension>& dimensions, const std::vector<double>& rates, const std::vector<Pass>& passes) {
  std::vector<double> forward(dimensions.size(), 0), backward = forward;
  std::vector<std::uint32_t> sizes;
  std::vector<bool> open;
  for (const auto& [size, wraps] : dimensions) {
    sizes.push_back(size);
    open.push_back(!wraps);
  }
  for (const Pass& pass : passes) {
    double left = 1.0 / static_cast<double>(passes.size());
    const std::optional<std::uint32_t> line = line_of(pass, sizes, open);
    for (const std::uint32_t k : pass.order) {
      const double size = dimensions[k].size, load = line == k ? left : 2 * left * (size - 1) / size;
      if (!pass.backward || !dimensions[k].wraps) forward[k] += load;
      if (pass.backward || !dimensions[k].wraps) backward[k] += load;
      left /= size;
    }
  }
  double most = 0;
  for (std::size_t k = 0; k < dimensions.size(); ++k) most = std::max({most, forward[k] / rates[k], backward[k] / rates[k]});
  return most;
}

// In one direction, in both, or beginning with each dimension: what loads the links least, the fewest passes among equals.
std::vector<Pass> best_passes(const std::vector<Dimension>& dimensions, const std::vector<double>& rates) {
  std::vector<std::uint32_t> order(dimensions.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<std::vector<std::uint32_t>> orders;
  for (std::size_t k = 0; k < order.size(); ++k, std::rotate(order.begin(), order.begin() + 1, order.end()))
    orders.push_back(order);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return rates[a] > rates[b]; });
  orders.push_back(order);
  std::vector<std::vector<Pass>> candidates;
  for (const auto& one : orders) candidates.push_back({{one, false}});
  for (const auto& one : orders) candidates.push_back({{one, false}, {one, true}});
  candidates.push_back(all_passes(dimensions.size()));
  std::size_t best = 0;
  for (std::size_t k = 1; k < candidates.size(); ++k) {
    if (seconds_of(dimensions, rates, candidates[best]) > kFaster * seconds_of(dimensions, rates, candidates[k])) best = k;
  }
  return candidates[best];
}

Program torus_for(const topo::Topology& topology) {
  const topo::GridForm form = topo::grid_form(topology);
  if (!form.is_whole()) {
    throw Error(Code::invalid_argument, fmt::format("is a grid of {} with dead chips", fmt::join(form.sizes, " x ")),
                "topology " + topology.name, "mesh_ring goes round them");
  }
  // The dimension that varies fastest is the first here and the last there.
  const std::size_t count = form.sizes.size();
  std::vector<Dimension> dimensions(count);
  std::vector<double> rates(count, std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> stride(count, 1), at(topology.hosts.size());
  for (std::size_t k = 0; k < count; ++k) {
    dimensions[k] = {form.sizes[count - 1 - k], form.wraps[count - 1 - k]};
    if (k > 0) stride[k] = stride[k - 1] * dimensions[k - 1].size;
  }
  for (std::uint32_t chip = 0; chip < form.chips.size(); ++chip) at[form.chips[chip]] = chip;
  for (const topo::Link& link : topology.links) {
    std::size_t k = 0;
    while (at[link.from] / stride[k] % dimensions[k].size == at[link.to] / stride[k] % dimensions[k].size) ++k;
    rates[k] = std::min(rates[k], link.rate);
  }
  Program program = grid_all_reduce(dimensions, best_passes(dimensions, rates), form.chips);
  program.name = kTorus;
  return program;
}

Mesh mesh_of(const topo::Topology& topology, const topo::GridForm& form) {
  if (form.sizes.size() != 2) {
    throw Error(Code::invalid_argument,
                fmt::format("is a grid of {}: rings round dead chips are for two dimensions", fmt::join(form.sizes, " x ")),
                "topology " + topology.name);
  }
  Mesh mesh{form.sizes[0], form.sizes[1], {}};
  for (const topo::Node host : form.chips) mesh.dead.push_back(host == topo::GridForm::kDead);
  return mesh;
}

Hosts checked_hosts(const topo::Topology& topology) {
  Hosts hosts = hosts_in(topology);
  if (!are_shared(hosts)) throw Error(Code::invalid_argument, "has no groups of hosts, each on a switch of its own", "topology " + topology.name);
  return hosts;
}

Program multi_ring_for(const topo::Topology& topology) {
  const Hosts hosts = checked_hosts(topology);
  const std::vector<std::vector<std::uint32_t>> groups = members_by_host(hosts);
  std::vector<std::uint32_t> ranks;
  for (const auto& group : groups) {
    if (group.size() != groups[0].size()) {
      throw Error(Code::invalid_argument, fmt::format("has groups of {} and of {} hosts: rings along both need equal ones", groups[0].size(), group.size()),
                  "topology " + topology.name);
    }
    ranks.insert(ranks.end(), group.begin(), group.end());
  }
  const auto size = static_cast<std::uint32_t>(groups[0].size());
  Program program = grid_all_reduce({{size, true}, {count(hosts), true}}, one_pass(2), ranks);
  program.name = kMultiRing;
  return program;
}

// Rates and lengths of all pairs' ways.
class Pairs {
 public:
  explicit Pairs(const topo::Topology& topology) : hosts_(static_cast<std::uint32_t>(topology.hosts.size())) {
    topo::Routes routes(topology);
    for (std::uint32_t from = 0; from < hosts_; ++from) {
      for (std::uint32_t to = 0; to < hosts_; ++to) {
        double rate = std::numeric_limits<double>::infinity();
        const std::vector<std::uint32_t> path = routes.path(from, to);
        for (const std::uint32_t link : path) rate = std::min(rate, topology.links[link].rate);
        rate_.push_back(rate);
        length_.push_back(static_cast<std::uint32_t>(path.size()));
      }
    }
  }

  std::vector<double> rates() const {  // that there are, ascending
    std::vector<double> rates = rate_;
    std::ranges::sort(rates);
    rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
    std::erase(rates, std::numeric_limits<double>::infinity());
    return rates;
  }

  // From host 0 through all and back, no step slower than `rate`: depth first, the shortest way first, then the quickest, then the lowest number.
  std::optional<std::vector<std::uint32_t>> circuit(double rate) const {
    std::vector<std::vector<std::uint32_t>> next(hosts_);
    for (std::uint32_t from = 0; from < hosts_; ++from) {
      for (std::uint32_t to = 1; to < hosts_; ++to) {
        if (to != from && at(rate_, from, to) >= rate) next[from].push_back(to);
      }
      std::ranges::stable_sort(next[from], [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(at(length_, from, a), -at(rate_, from, a)) < std::pair(at(length_, from, b), -at(rate_, from, b));
      });
    }
    std::vector<std::uint32_t> order{0}, tried(hosts_, 0);
    std::vector<bool> on(hosts_, false);
    on[0] = true;
    for (std::uint32_t steps = 0; steps < kMostSteps && !order.empty(); ++steps) {
      const std::uint32_t last = order.back();
      if (order.size() == hosts_ && at(rate_, last, 0) >= rate) return order;
      while (tried[last] < next[last].size() && on[next[last][tried[last]]]) ++tried[last];
      if (tried[last] == next[last].size()) {
        tried[last] = 0;
        on[last] = false;
        order.pop_back();
      } else {
        order.push_back(next[last][tried[last]++]);
        on[order.back()] = true;
      }
    }
    return std::nullopt;
  }

 private:
  template <class Value>
  Value at(const std::vector<Value>& of, std::uint32_t from, std::uint32_t to) const {
    return of[std::size_t{from} * hosts_ + to];
  }
  std::uint32_t hosts_;
  std::vector<double> rate_;
  std::vector<std::uint32_t> length_;
};

Program ordered_ring_for(const topo::Topology& topology) {
  std::vector<std::uint32_t> as_numbered(topology.hosts.size());
  std::iota(as_numbered.begin(), as_numbered.end(), 0U);
  Program best;
  double rate = 0;
  std::vector<std::vector<std::uint32_t>> orders{as_numbered};
  if (auto order = order_by_rates(topology); order != as_numbered) orders.push_back(std::move(order));
  for (const auto& order : orders) {
    for (const bool both_ways : {false, true}) {
      Program program = ring_all_reduce(order, both_ways);
      const double reached = congestion(program, topology).rate;
      if (rate > 0 && reached <= kFaster * rate) continue;
      rate = reached;
      best = std::move(program);
    }
  }
  best.name = kOrderedRing;
  return best;
}

}  // namespace

bool is_form(const std::string& name) { return std::ranges::find(kForms, name) != std::end(kForms); }

std::vector<std::uint32_t> order_by_rates(const topo::Topology& topology) {
  std::vector<std::uint32_t> order(topology.hosts.size());
  std::iota(order.begin(), order.end(), 0U);
  if (order.size() < 3 || order.size() > kMostExactHosts) return order;
  const Pairs pairs(topology);
  const std::vector<double> rates = pairs.rates();
  std::size_t low = 0, high = rates.size();  // found at `low`, not at `high`
  if (auto found = pairs.circuit(rates[0])) order = std::move(*found);
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    if (auto found = pairs.circuit(rates[middle])) {
      order = std::move(*found);
      low = middle;
    } else {
      high = middle;
    }
  }
  return order;
}

Program build_for(const topo::Topology& topology, const std::string& form) {
  if (topology.hosts.empty() || topology.hosts.size() > kMaxRanks) {
    throw Error(Code::invalid_argument, fmt::format("has {} hosts; a program has 1 to {}", topology.hosts.size(), kMaxRanks),
                "topology " + topology.name);
  }
  if (form == kTorus) return torus_for(topology);
  if (form == kMultiRing) return multi_ring_for(topology);
  if (form == kHierarchical) return hierarchical_all_reduce(checked_hosts(topology));
  if (form == kOrderedRing) return ordered_ring_for(topology);
  if (form != kMeshRing && form != kRowPair) {
    throw Error(Code::invalid_argument, "no form of a network is called " + form, "",
                fmt::format("{}", fmt::join(kForms, ", ")));
  }
  const topo::GridForm grid = topo::grid_form(topology);
  const Mesh mesh = mesh_of(topology, grid);
  return form == kMeshRing ? mesh_ring_all_reduce(mesh, grid.chips) : row_pair_all_reduce(mesh, grid.chips);
}

std::vector<Program> programs_of_form(const topo::Topology& topology) {
  std::vector<Program> all;
  for (const char* const form : kForms) {
    if (form == std::string_view(kHierarchical) && topology.hosts.size() > kMostExactHosts) continue;  // a lane for every transfer
    try {
      all.push_back(build_for(topology, form));
    } catch (const Error& error) {
      if (error.code() != Code::invalid_argument) throw;  // else the network is of another form
    }
  }
  return all;
}

}  // namespace shoal::collective
