#include "shoal/exchange/forecast.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/exchange/plan_price.h"

namespace shoal::exchange {
namespace {

using Policy = Choice::Policy;

// Whenever it is there: of a layer that is divided also in the middle of the passes, of owners also behind the optimizer's step.
double seconds_on_the_link(const Cost& cost) { return cost.link + cost.between + cost.after; }

Choice of(const char* text) { return parse_choice(text, "forecast"); }

// The smallest rate between a modem and a terabyte a second from which on `holds`, which is monotone; infinity if it never does.
double least_rate(const std::function<bool(double)>& holds) {
  double below = 1e3, above = 1e12;
  if (!holds(above)) return std::numeric_limits<double>::infinity();
  if (holds(below)) return below;
  while (above / below > 1.01) {
    const double middle = std::sqrt(below * above);
    (holds(middle) ? above : below) = middle;
  }
  return above;
}

Cluster at_rate(Cluster cluster, double rate) {
  cluster.machine.link.fan_in *= rate / cluster.machine.link.rate;
  cluster.machine.link.rate = rate;
  return cluster;
}

// How many of the last members bring no gradients.
std::uint32_t servers_in(const Choice& choice) {
  std::uint32_t servers = choice.policy == Policy::way ? servers_of(choice.way) : 0;
  for (const auto& o : choice.overrides) servers = std::max(servers, servers_of(o.way));
  return servers;
}

bool is_exact(const ExchangePlan& plan, const Choice& choice) {
  return !choice.rounds && std::all_of(plan.units.begin(), plan.units.end(), [](const Unit& u) { return way_named(u.way)->exact(); });
}

double waited_in_a_round(const Iteration& it, const Rounds& rounds) {
  if (rounds.fragments == 1) return it.on_the_link;
  const double hidden = it.computing * rounds.steps / rounds.fragments;  // while one fragment is on its way
  std::vector<double> link(it.plan.turns());
  for (const auto& unit : it.plan.units) link[unit.turn] += seconds_on_the_link(cost_of(it.plan, unit));
  return std::accumulate(link.begin(), link.end(), 0.0,
                         [&](double sum, double seconds) { return sum + std::max(0.0, seconds - hidden); });
}

// Whether so many members can go by every way that the choice names: servers leave some that train, groups are of equal size.
bool can_have(const Choice& choice, std::uint32_t members) {
  const auto can = [members](const std::string& way) {
    try {
      way_named(way)->check(members);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  return (choice.policy != Policy::way || can(choice.way)) &&
         std::all_of(choice.overrides.begin(), choice.overrides.end(), [&](const auto& o) { return can(o.way); });
}

// By a way, where some tensor of the model goes so, among so many.
std::optional<Iteration> where_it_can(const Model& model, const Cluster& cluster, const Choice& choice) {
  const bool one_way = choice.policy == Policy::way;
  if (one_way && (cluster.members == 1 || !can_have(choice, cluster.members))) return {};
  auto it = foresee(model, cluster, choice);
  if (one_way && std::ranges::none_of(it.plan.units, [&](const Unit& unit) { return unit.way == choice.way; })) return {};
  return it;
}

std::vector<Row> compare(const Model& model, const Cluster& cluster, const Choice& asked) {
  std::vector<Row> rows;
  constexpr const char* kExact[] = {"ddp", "ddp:1MB", "wfbp", "poseidon", "p3", "auto", "factors", "rows", "owners"};
  constexpr const char* kOthers[] = {"bf16", "int8", "powersgd:4", "topk:0.001", "local:8", "diloco:32:4"};
  const auto ddp = foresee(model, cluster, of("ddp"));
  const auto add = [&](const std::string& name, double seconds, double bytes) {
    rows.push_back({name, true, seconds, bytes, cluster.members * ddp.computing / seconds, ddp.seconds / seconds});
  };
  const auto by = [&](const Choice& choice, const Iteration& it) {
    rows.push_back({to_text(choice), is_exact(it.plan, choice), it.seconds, it.bytes, it.speedup(), it.speedup() / ddp.speedup()});
  };
  const auto by_all = [&](std::span<const char* const> choices) {
    for (const char* choice : choices) {
      if (const auto it = where_it_can(model, cluster, of(choice))) by(of(choice), *it);
    }
  };
  add("no overlap", ddp.computing + ddp.on_the_link, ddp.bytes);
  add("whole, by servers", seconds_by_servers(model, cluster, 0, Order::fifo), ddp.bytes);
  by_all(kExact);
  std::optional<std::pair<Choice, Iteration>> divided;  // in that number of groups by which an iteration takes least
  for (std::uint32_t groups = 1; groups < cluster.members; ++groups) {
    if (cluster.members % groups != 0) continue;
    const auto choice = of((kHybrid + std::to_string(groups)).c_str());
    auto it = where_it_can(model, cluster, choice);
    if (it && (!divided || it->seconds < divided->second.seconds)) divided.emplace(choice, *std::move(it));
  }
  if (divided) by(divided->first, divided->second);
  by_all(kOthers);
  if (std::ranges::none_of(rows, [&](const Row& row) { return row.choice == to_text(asked); })) by(asked, foresee(model, cluster, asked));
  add("bound", std::max(ddp.computing, ddp.on_the_link), ddp.bytes);
  return rows;
}

std::vector<Scaling> scale(const Model& model, Cluster cluster, const Choice& choice) {
  std::vector<Scaling> all;
  for (cluster.members = 1; cluster.members <= 64; cluster.members *= 2) {
    if (!can_have(choice, cluster.members)) continue;
    const auto it = foresee(model, cluster, choice);
    all.push_back({cluster.members, it.seconds, it.speedup(), foresee(model, cluster, of("ddp")).speedup()});
  }
  return all;
}

std::vector<BreakEven> rates(const Model& model, const Cluster& cluster, const Choice& choice) {
  const auto least = [&](const auto& holds) { return least_rate([&](double rate) { return holds(at_rate(cluster, rate)); }); };
  const auto faster_than_one = [&](const Choice& by) {
    return [&model, by](const Cluster& c) { return foresee(model, c, by).speedup() > 1; };
  };
  return {
      {"faster than one machine, as DistributedDataParallel", least(faster_than_one(of("ddp")))},
      {"faster than one machine, by " + to_text(choice), least(faster_than_one(choice))},
      {"gradients take less time than computing", least([&](const Cluster& c) {
         const auto it = foresee(model, c, of("wfbp"));
         return it.on_the_link <= it.computing;
       })},
      {"9 of 10 machines' worth, by " + to_text(choice), least([&](const Cluster& c) {
         return foresee(model, c, choice).speedup() >= 0.9 * c.members;
       })},
      {"whole gradients beat factors everywhere", least([&](const Cluster& c) {
         const auto plan = foresee(model, c, of("auto")).plan;
         return std::none_of(plan.units.begin(), plan.units.end(), [](const Unit& u) { return u.way == kByFactors; });
       })},
  };
}

}  // namespace

Iteration foresee(const Model& model, const Cluster& cluster, const Choice& choice) {
  auto run = as_measured(model, cluster.samples, cluster.machine.flops);
  Iteration it;
  it.plan = make_plan(std::move(run.tensors), cluster.members, cluster.machine.link, run.compute, choice);
  it.computing = run.compute.forward_seconds + run.compute.backward_seconds;
  for (const auto& unit : it.plan.units) {
    const auto cost = cost_of(it.plan, unit);
    it.on_the_link += seconds_on_the_link(cost);
    it.bytes += cost.sent;
  }
  it.seconds = it.plan.predicted_seconds();
  it.workers = cluster.members - servers_in(choice);
  if (choice.rounds) {
    it.seconds = it.computing + waited_in_a_round(it, *choice.rounds) / choice.rounds->steps;
    it.bytes /= choice.rounds->steps;
  }
  return it;
}

double seconds_by_servers(const Model& model, const Cluster& cluster, std::uint64_t slice_bytes, Order order) {
  const auto run = as_measured(model, cluster.samples, cluster.machine.flops);
  const auto& link = cluster.machine.link;
  const double others = static_cast<double>(cluster.members - 1) / cluster.members;
  std::vector<Work> units;
  for (std::size_t t = run.tensors.size(); t-- > 0;) {  // backward produces the last first
    const auto& tensor = run.tensors[t];
    const auto bytes = static_cast<double>(tensor.count * size_of(tensor.type));
    const double pieces = slice_bytes == 0 ? 1 : std::ceil(bytes / static_cast<double>(slice_bytes));
    units.push_back({.ready = tensor.backward_at, .needed = tensor.forward_at, .priority = tensor.first_use,
                     .link = 2 * others * (bytes / link.rate + link.alpha), .add = others * bytes / link.add_rate,
                     .pieces = static_cast<std::uint32_t>(pieces)});
  }
  return foresee(units, run.compute.forward_seconds, run.compute.backward_seconds, order).seconds;
}

Regime regime_of(const Iteration& dense) {
  constexpr double kIdle = 0.1;  // of the computing: then even nothing hidden would cost less than a tenth
  if (dense.on_the_link < kIdle * dense.computing) return Regime::computing;
  return dense.on_the_link <= dense.computing ? Regime::order : Regime::bytes;
}

const char* name(Regime regime) {
  switch (regime) {
    case Regime::computing: return "computing";
    case Regime::order: return "order";
    case Regime::bytes: return "bytes";
  }
  return "";
}

Forecast forecast(const Model& model, const Cluster& cluster, const Choice& choice) {
  Forecast f;
  f.chosen = foresee(model, cluster, choice);
  f.regime = regime_of(foresee(model, cluster, of("wfbp")));
  f.rows = compare(model, cluster, choice);
  if (cluster.machine.link.network) return f;
  f.scaling = scale(model, cluster, choice);
  if (cluster.members > 1) f.break_even = rates(model, cluster, choice);
  return f;
}

}  // namespace shoal::exchange
