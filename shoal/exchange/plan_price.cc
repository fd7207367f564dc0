#include "shoal/exchange/plan_price.h"

#include <algorithm>
#include <cmath>

namespace shoal::exchange {
namespace {

using collective::Collective;

// Units are foreseen in at most so many pieces: finer ones change a step by less than a thousandth.
constexpr double kMostPieces = 16;

Work work_of(const ExchangePlan& plan, const Unit& unit, const UnitPrice& price) {
  Work work{.priority = unit.priority, .link = price.link, .thread = price.multiply};
  bool known = true;
  for (auto t : unit.tensors) {
    const auto& tensor = plan.tensors[t];
    work.ready = std::max(work.ready, tensor.backward_at);
    known = known && tensor.forward_at >= 0;
    work.needed = t == unit.tensors.front() ? tensor.forward_at : std::min(work.needed, tensor.forward_at);
  }
  if (!known) work.needed = 0;
  const double slices = static_cast<double>(plan.bytes_of(unit)) / plan.ranks / std::max<double>(unit.slice_bytes, 1);
  if (plan.order == Order::priority) work.pieces = static_cast<std::uint32_t>(std::clamp(std::ceil(slices), 1.0, kMostPieces));
  return work;
}

}  // namespace

FactorTransfers factor_transfers(const TensorSpec& tensor, std::uint32_t ranks, const collective::LinkModel& link) {
  const auto cheapest = [&](Collective collective, std::uint64_t bytes) {
    const auto size = static_cast<double>(bytes);
    return Transfer{collective::choose(collective, ranks, size, link), size};
  };
  return {cheapest(Collective::all_gather, ranks * sizeof(factor::Head)),
          cheapest(Collective::all_gather, ranks * tensor.rows * tensor.layer().row_bytes()),
          cheapest(Collective::all_reduce, tensor.layer().dense_bytes())};
}

UnitPrice price_of(const ExchangePlan& plan, const Unit& unit) {
  const auto on = [&plan](Collective collective, const Transfer& transfer) {
    return collective::price(collective, transfer.way, plan.ranks, transfer.bytes, plan.link);
  };
  if (unit.way != kByFactors) return {on(Collective::all_reduce, {unit.way, static_cast<double>(plan.bytes_of(unit))}), 0};
  const auto& tensor = plan.tensors[unit.tensors.front()];
  const auto by = factor_transfers(tensor, plan.ranks, plan.link);
  UnitPrice price{on(Collective::all_gather, by.heads) + on(Collective::all_gather, by.rows), 0};
  if (plan.multiply_rate > 0) price.multiply = factor::extra_operations(tensor.layer(), tensor.rows, plan.ranks) / plan.multiply_rate;
  return price;
}

double price_units(ExchangePlan& plan) {
  std::vector<Work> work;
  for (auto& unit : plan.units) {
    const auto price = price_of(plan, unit);
    unit.predicted_seconds = price.whole();
    work.push_back(work_of(plan, unit, price));
  }
  const auto line = foresee(work, plan.forward_seconds, plan.backward_seconds, plan.order);
  for (std::size_t u = 0; u < plan.units.size(); ++u) plan.units[u].predicted_exposed = line.waited[u];
  return line.seconds;
}

ExchangePlan priced_on(ExchangePlan plan, const collective::LinkModel& link) {
  plan.link = link;
  price_units(plan);
  return plan;
}

}  // namespace shoal::exchange
