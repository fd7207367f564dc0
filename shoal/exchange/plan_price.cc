#include "shoal/exchange/plan_price.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

// Units are foreseen in at most so many pieces: finer ones change a step by less than a thousandth.
constexpr double kMostInTurn = 16;

// What stands before an urgent unit: in its sender's queues, which the timeline plays; and at each further link to which several members send at once, what their
// receiver has granted them, first come first served: no sender's order rules there. Of four hosts at 130, 200 and 344 Mbit/s each step of a program waited for
// 0.9, 0.6 and 0.5 MB (docs/training-measured.md).
constexpr double kQueued = 512 * 1024;

// By priority, of a gradient that goes whole: steps of several units are under way at once, so that several members send to one. In a ring each link has one
// sender, who sends the most urgent first, behind its queues. Members that leave no core idle compute later than foreseen themselves, for which, with what meets
// there, a plan by priority must earn something already (planner.cc).
bool meet_at_links(const ExchangePlan& plan, const Unit& unit) {
  return plan.order == Order::priority && plan.operation_seconds == 0 && plan.workers() > 2 && is_all_reduce(unit) && unit.way != kByRing && !collective::is_of_network(unit.way);
}

double waits_behind_others(const ExchangePlan& plan, const Unit& unit) {
  const double steps = collective::price(collective::Collective::all_reduce, unit.way, plan.workers(), 0, {.alpha = 1});
  return (steps - 1) * kQueued / plan.link.rate;
}

Work work_of(const ExchangePlan& plan, const Unit& unit, const Cost& cost) {
  Work work{.priority = unit.priority, .link = cost.link, .bytes = std::min(cost.link, cost.wire / plan.link.rate), .thread = plan.settled ? 0 : cost.computing};
  bool known = true;
  for (auto t : unit.tensors) {
    const auto& tensor = plan.tensors[t];
    work.ready = std::max(work.ready, tensor.backward_at);
    known = known && tensor.forward_at >= 0;
    work.needed = t == unit.tensors.front() ? tensor.forward_at : std::min(work.needed, tensor.forward_at);
  }
  if (!known) work.needed = 0;
  const double slices = static_cast<double>(plan.bytes_of(unit)) / plan.ranks / std::max<double>(unit.slice_bytes, 1);
  if (meet_at_links(plan, unit)) {
    work.behind = waits_behind_others(plan, unit);
    const double longer = plan.link.fan_in > 0 ? work.bytes * std::max(0.0, plan.link.rate / plan.link.fan_in - 1) : 0;
    work.link += longer;
    work.bytes += longer;
  }
  // Where members share cores, a step's latency is mostly their time, and no other unit's steps are taken meanwhile.
  if (plan.operation_seconds == 0) work.latency = std::min(cost.latency, work.link - work.bytes);
  if (plan.order == Order::priority) work.pieces = static_cast<std::uint32_t>(std::clamp(std::ceil(slices), 1.0, kMostInTurn));
  return work;
}

// What owners send back leaves in the order in which the next forward pass needs it, and hides behind what comes before that. Seconds that do not hide.
double expose_returns(ExchangePlan& plan, const std::vector<Work>& work, const std::vector<double>& after) {
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return work[a].needed < work[b].needed; });
  double arrived = 0, waited = 0;
  for (const auto u : order) {
    if (after[u] == 0) continue;
    arrived += after[u];
    const double wait = std::max(0.0, arrived - work[u].needed - waited);
    plan.units[u].predicted_exposed += wait;
    waited += wait;
  }
  return waited;
}

// What takes its time is multiplying, of as many numbers as a mean has, and by priority stepping.
void place_as_they_arrive(const ExchangePlan& plan, double seconds, std::vector<double>& of_units) {
  const auto numbers = [&](const Unit& unit) { return plan.order == Order::priority || unit.way == kByFactors ? static_cast<double>(plan.bytes_of(unit)) : 0; };
  const double all = std::accumulate(plan.units.begin(), plan.units.end(), 0.0, [&](double sum, const Unit& unit) { return sum + numbers(unit); });
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    of_units[u] += seconds * (all > 0 ? numbers(plan.units[u]) / all : 1 / static_cast<double>(plan.units.size()));
  }
}

// The own product of a layer that goes by its factors is multiplied with those of others, at its gate. Measured backward passes had it, before the layer's gradient
// was there. Seconds that leave backward.
double move_own_products(const ExchangePlan& plan, std::vector<Work>& work, std::vector<double>& at_gates) {
  if (plan.own_rate == 0) return 0;
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return work[a].ready < work[b].ready; });
  double moved = 0;
  for (const auto u : order) {
    if (plan.units[u].way == kByFactors) {
      const auto& layer = plan.tensors[plan.units[u].tensors.front()];
      const double product = 2 * static_cast<double>(layer.rows) * static_cast<double>(layer.count) / plan.own_rate;
      at_gates[u] += std::min(product, work[u].ready - moved);
      moved += at_gates[u];
    }
    work[u].ready -= moved;
  }
  return moved;
}

}  // namespace

bool is_divided(const Unit& unit) { return way_named(unit.way)->divides(); }

Load load_of(const ExchangePlan& plan, const Unit& unit) {
  Load load{.first = plan.tensors[unit.tensors.front()], .ranks = plan.ranks, .link = plan.link, .multiply_rate = plan.multiply_rate, .servers = plan.servers};
  double on_the_wire = 0;
  for (auto t : unit.tensors) {
    load.count += plan.tensors[t].count;
    on_the_wire += plan.tensors[t].wire_share * static_cast<double>(plan.tensors[t].count);
  }
  load.wire_share = on_the_wire / static_cast<double>(load.count);
  return load;
}

Cost cost_of(const ExchangePlan& plan, const Unit& unit) { return way_named(unit.way)->cost(load_of(plan, unit)); }

double price_units(ExchangePlan& plan) {
  std::vector<Work> work;
  double between = 0;
  std::vector<double> after;
  for (auto& unit : plan.units) {
    const auto cost = cost_of(plan, unit);
    unit.predicted_seconds = cost.seconds();
    unit.predicted_exposed = cost.between;
    between += cost.between;
    after.push_back(cost.after);
    work.push_back(work_of(plan, unit, cost));
  }
  // The optimizer's step comes after all means at a barrier, else each parameter's after its own.
  const bool by_parameter = plan.order == Order::priority;
  const double elements = std::accumulate(plan.tensors.begin(), plan.tensors.end(), 0.0, [](double n, const auto& t) { return n + static_cast<double>(t.count); });
  std::vector<double> at_gates(work.size());  // seconds that an iteration has anyway, in another place
  const double backward = plan.backward_seconds - move_own_products(plan, work, at_gates);
  for (std::size_t u = 0; u < work.size() && by_parameter && !plan.settled; ++u) {
    at_gates[u] += plan.step_seconds * static_cast<double>(load_of(plan, plan.units[u]).count) / elements;
  }
  const double placing = plan.placing_seconds;
  if (placing > 0) place_as_they_arrive(plan, placing, at_gates);
  for (std::size_t u = 0; u < work.size(); ++u) work[u].thread += at_gates[u];
  const double besides = plan.operating_seconds() + (by_parameter && !plan.settled ? 0 : plan.stepping_seconds() - placing);
  const auto line = foresee(work, plan.forward_seconds, backward, plan.order,
                            {.saves = plan.link.saves / plan.link.rate,
                             .besides = besides - std::accumulate(after.begin(), after.end(), between),
                             .queued = kQueued / plan.link.rate});
  for (std::size_t u = 0; u < plan.units.size(); ++u) plan.units[u].predicted_exposed += std::max(0.0, line.waited[u] - at_gates[u]);
  const double returned = expose_returns(plan, work, after);
  return line.seconds + between + returned + besides;
}

double hidden_products(ExchangePlan plan, double seconds) {
  double products = 0;
  for (const auto& unit : plan.units) products += unit.way == kByFactors ? cost_of(plan, unit).computing : 0;
  if (products == 0) return 0;
  plan.multiply_rate = std::numeric_limits<double>::infinity();
  return products - (seconds - price_units(plan));
}

ExchangePlan priced_on(ExchangePlan plan, const collective::LinkModel& link) {
  plan.link = link;
  price_units(plan);
  return plan;
}

ExchangePlan settled(ExchangePlan plan, const Took& took, std::span<const double> produced) {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    auto& tensor = plan.tensors[i];
    if (tensor.forward_at >= 0 && plan.forward_seconds > 0) tensor.forward_at *= took.forward / plan.forward_seconds;
    if (tensor.backward_at < 0) continue;
    if (i < produced.size()) {
      tensor.backward_at = produced[i] * took.backward;
    } else if (plan.backward_seconds > 0) {
      tensor.backward_at *= took.backward / plan.backward_seconds;
    }
  }
  plan.forward_seconds = took.forward;
  plan.backward_seconds = took.backward;
  plan.step_seconds = took.between;
  plan.placing_seconds = took.placing;
  plan.processor_seconds = took.processor;
  plan.own_rate = 0;  // these passes have no own products
  plan.settled = true;
  price_units(plan);
  return plan;
}

namespace {

ExchangePlan by_all_reduce(ExchangePlan plan, const std::function<bool(const Unit&)>& which) {
  for (auto& unit : plan.units) {
    if (!which(unit)) continue;
    if (plan.settled) plan.operation_seconds = 0;  // the passes have it
    plan.settled = false;  // other arithmetic than its iterations had
    plan.processor_seconds = plan.placing_seconds = 0;
    plan.tensors[unit.tensors.front()].rows = 0;
    unit.way = collective::choose(collective::Collective::all_reduce, plan.workers(), static_cast<double>(plan.bytes_of(unit)), plan.link);
  }
  return priced_on(plan, plan.link);
}

}  // namespace

ExchangePlan without_factors(ExchangePlan plan) {
  return by_all_reduce(std::move(plan), [](const Unit& unit) { return unit.way == kByFactors; });
}

ExchangePlan without_strips(ExchangePlan plan) {
  return by_all_reduce(std::move(plan), is_divided);
}

ExchangePlan for_members(ExchangePlan plan, std::uint32_t ranks, std::shared_ptr<const collective::KnownNetwork> network) {
  if (std::exchange(plan.ranks, ranks) != ranks) plan.processor_seconds = plan.operation_seconds = 0;  // others are on those cores
  plan.link.network = network;
  return by_all_reduce(std::move(plan), [ranks, network](const Unit& unit) {
    const auto way = way_named(unit.way);
    if (collective::is_of_network(unit.way)) return !network || network->made(collective::Collective::all_reduce, unit.way) == nullptr;
    if (unit.way == kByFactors || way->divides()) return true;
    try {
      way->check(ranks);
      return false;
    } catch (const Error&) {  // too few are left
      return true;
    }
  });
}

}  // namespace shoal::exchange
