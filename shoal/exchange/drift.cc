#include "shoal/exchange/drift.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/exchange/plan_price.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

// Whether the plan's maker was free to choose this unit's way, and could have chosen another with the same bits.
bool is_free(const ExchangePlan& plan, const Choice& choice, const Unit& unit) {
  if (choice.policy == Choice::Policy::way || !is_all_reduce(unit) || collective::is_of_network(unit.way)) return false;
  const auto overridden = [&](std::uint32_t t) { return choice.override_of(plan.tensors[t].name) != nullptr; };
  if (std::any_of(unit.tensors.begin(), unit.tensors.end(), overridden)) return false;
  if (is_rounded_by_step(plan.tensors[unit.tensors.front()].type)) return false;
  return collective::build(Collective::all_reduce, unit.way, plan.workers()).order == collective::AddOrder::left_fold;
}

// Whether units that go by a network's programs add in the same order by those of the other one.
bool same_programs(const ExchangePlan& plan, const collective::LinkModel& before, const collective::LinkModel& after) {
  return std::all_of(plan.units.begin(), plan.units.end(), [&](const Unit& unit) {
    if (!collective::is_of_network(unit.way) || before.network == after.network) return true;
    const auto* const was = before.network ? before.network->made(Collective::all_reduce, unit.way) : nullptr;
    const auto* const is = after.network ? after.network->made(Collective::all_reduce, unit.way) : nullptr;
    return was != nullptr && is != nullptr && collective::to_json(was->program()) == collective::to_json(is->program());
  });
}

}  // namespace

bool Drift::after(double waited) {
  window_.push_back(waited);
  if (window_.size() < kWindow) return false;
  const auto middle = window_.begin() + kWindow / 2;
  std::nth_element(window_.begin(), middle, window_.end());
  const double median = *middle;
  window_.clear();
  if (usual_ < 0) {
    usual_ = median;
    return false;
  }
  const double difference = median - usual_;
  if (std::abs(difference) <= kMatters * iteration_seconds_) {
    off_ = 0;
  } else if (difference > 0) {
    off_ = std::max(off_, 0) + 1;
  } else {
    off_ = std::min(off_, 0) - 1;
  }
  return std::abs(off_) >= patience_;
}

void Drift::fitted() {
  window_.clear();
  usual_ = -1;
  off_ = 0;
  patience_ = std::min(2 * patience_, kMostPatience);
}

ExchangePlan fitted_to(ExchangePlan plan, const collective::LinkModel& link) {
  const auto choice = parse_choice(plan.choice, "the plan");
  const auto before = std::exchange(plan.link, link);
  if (!same_programs(plan, before, link)) plan.link.network = before.network;
  for (auto& unit : plan.units) {
    if (!is_free(plan, choice, unit)) continue;
    const auto bytes = static_cast<double>(plan.bytes_of(unit));
    unit.way = collective::choose(Collective::all_reduce, plan.workers(), bytes, link, true);
    const bool sliced_by_hand = choice.policy == Choice::Policy::p3 && choice.bytes > 0;
    if (!sliced_by_hand) unit.slice_bytes = collective::slice_bytes(Collective::all_reduce, unit.way, plan.workers(), bytes, link);
  }
  price_units(plan);
  // The other ways choose programs for their parts by the plan's link, and so the order in which they add.
  if (!std::all_of(plan.units.begin(), plan.units.end(), is_all_reduce)) plan.link = before;
  return plan;
}

}  // namespace shoal::exchange
