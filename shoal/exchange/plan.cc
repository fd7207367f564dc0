#include "shoal/exchange/plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

using collective::Collective;
using Order = std::vector<std::uint32_t>;

// Registration order reversed is what backward nearly always does; measured times correct it.
Order production_order(const std::vector<TensorSpec>& tensors) {
  Order order(tensors.size());
  std::iota(order.rbegin(), order.rend(), 0u);
  const bool measured = std::all_of(tensors.begin(), tensors.end(), [](const TensorSpec& t) { return t.backward_at >= 0; });
  if (measured) {
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return tensors[a].backward_at < tensors[b].backward_at; });
  }
  return order;
}

// A tensor above `limit` bytes travels alone, straight from the gradient's own memory; so does one that goes by its factors.
// Smaller ones of one type are gathered, in the order in which backward produces them, until the limit is full; a large one
// between them does not part them. Units stand in the order in which they are complete.
std::vector<Unit> pack(const std::vector<TensorSpec>& tensors, const Order& order, std::uint64_t limit, const std::vector<bool>& by_factors) {
  struct Open {
    Unit unit;
    std::uint64_t bytes = 0;
  };
  std::map<DType, Open> open;
  std::vector<std::pair<std::size_t, Unit>> complete;  // by the place in `order` of its last tensor
  const auto close = [&](Open& pack) {
    const auto last = std::find(order.begin(), order.end(), pack.unit.tensors.back()) - order.begin();
    complete.emplace_back(static_cast<std::size_t>(last), std::move(pack.unit));
    pack = {};
  };
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto& tensor = tensors[order[place]];
    const auto bytes = tensor.count * size_of(tensor.type);
    if (bytes > limit || by_factors[order[place]]) {
      Unit alone;
      alone.tensors = {order[place]};
      if (by_factors[order[place]]) alone.way = kByFactors;
      complete.emplace_back(place, std::move(alone));
      continue;
    }
    auto& pack = open[tensor.type];
    if (!pack.unit.tensors.empty() && pack.bytes + bytes > limit) close(pack);
    pack.unit.tensors.push_back(order[place]);
    pack.bytes += bytes;
  }
  for (auto& [type, pack] : open) {
    if (!pack.unit.tensors.empty()) close(pack);
  }
  std::sort(complete.begin(), complete.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Unit> units;
  for (auto& [place, unit] : complete) units.push_back(std::move(unit));
  return units;
}

double seconds_on_the_link(const ExchangePlan& plan, const Unit& unit) {
  const auto on = [&plan](Collective collective, const Transfer& transfer) {
    return collective::price(collective, transfer.way, plan.ranks, transfer.bytes, plan.link);
  };
  if (unit.way != kByFactors) return on(Collective::all_reduce, {unit.way, static_cast<double>(plan.bytes_of(unit))});
  const auto by = factor_transfers(plan.tensors[unit.tensors.front()], plan.ranks, plan.link);
  return on(Collective::all_gather, by.heads) + on(Collective::all_gather, by.rows);
}

// What the product of all members' rows costs beyond the own ones, which backward then leaves out.
double seconds_multiplying(const ExchangePlan& plan, const Unit& unit) {
  if (unit.way != kByFactors || plan.multiply_rate <= 0) return 0;
  const auto& tensor = plan.tensors[unit.tensors.front()];
  return factor::extra_operations(tensor.layer(), tensor.rows, plan.ranks) / plan.multiply_rate;
}

// Prices the units one after another on one link, each from the moment its last gradient exists (research/sync.md 7.4:
// T = F + max_l (B_{>=l} + C_{<=l})), and notes what of each lies behind the end of backward. Factors are multiplied one after another by
// the thread that ran backward, as they arrive (1.4). Returns the end of the last.
double price_units(ExchangePlan& plan) {
  double link_free = 0, thread_free = plan.backward_seconds;
  for (auto& unit : plan.units) {
    double ready = 0;
    for (auto t : unit.tensors) ready = std::max(ready, plan.tensors[t].backward_at);
    const double on_the_link = seconds_on_the_link(plan, unit), multiplying = seconds_multiplying(plan, unit);
    unit.predicted_seconds = on_the_link + multiplying;
    const double begin = std::max(ready, link_free);
    link_free = begin + on_the_link;
    unit.predicted_exposed = std::max(0.0, link_free - std::max(begin, plan.backward_seconds)) + multiplying;
    thread_free = std::max(thread_free, link_free) + multiplying;
  }
  return std::max(link_free, thread_free);
}

// Which layers' weights go by factors: those whose time on the link and in the multiplication together is shorter (research/sync.md 1.4).
std::vector<bool> shorter_by_factors(const ExchangePlan& plan) {
  std::vector<bool> shorter(plan.tensors.size(), false);
  for (std::uint32_t t = 0; t < plan.tensors.size(); ++t) {
    const auto& tensor = plan.tensors[t];
    if (tensor.rows == 0 || plan.multiply_rate <= 0) continue;
    const Unit dense{.tensors = {t}, .way = factor_transfers(tensor, plan.ranks, plan.link).rest.way};
    const Unit factors{.tensors = {t}, .way = kByFactors};
    shorter[t] = seconds_on_the_link(plan, factors) + seconds_multiplying(plan, factors) < seconds_on_the_link(plan, dense);
  }
  return shorter;
}

void choose_ways(ExchangePlan& plan, const std::string& way) {
  for (auto& unit : plan.units) {
    const auto bytes = static_cast<double>(plan.bytes_of(unit));
    const std::string dense = way == "auto" ? collective::choose(Collective::all_reduce, plan.ranks, bytes, plan.link) : way;
    if (unit.way != kByFactors) unit.way = dense;
    unit.slice_bytes = collective::slice_bytes(Collective::all_reduce, dense, plan.ranks, bytes, plan.link);
    unit.priority = plan.tensors[unit.tensors.front()].first_use;
    for (auto t : unit.tensors) unit.priority = std::min(unit.priority, plan.tensors[t].first_use);
  }
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

std::uint64_t ExchangePlan::bytes_of(const Unit& unit) const {
  std::uint64_t bytes = 0;
  for (auto t : unit.tensors) bytes += tensors[t].count * size_of(tensors[t].type);
  return bytes;
}

std::string ExchangePlan::name_of(const Unit& unit) const {
  const auto& first = tensors[unit.tensors.front()].name;
  if (unit.tensors.size() == 1) return first;
  return first + " and " + std::to_string(unit.tensors.size() - 1) + " more";
}

double ExchangePlan::predicted_exposed() const {
  return std::accumulate(units.begin(), units.end(), 0.0, [](double s, const Unit& u) { return s + u.predicted_exposed; });
}

std::uint64_t ExchangePlan::hash() const {
  std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  const auto mix = [&h](const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) h = (h ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  };
  const auto mix_number = [&mix](std::uint64_t v) { mix(&v, sizeof v); };
  mix_number(ranks);
  for (const auto& t : tensors) {
    mix(t.name.data(), t.name.size());
    mix_number(static_cast<std::uint64_t>(t.type));
    mix_number(t.count);
  }
  for (const auto& u : units) {
    mix_number(u.tensors.size());
    for (auto t : u.tensors) mix_number(t);
    if (u.way == kByFactors) mix_number(tensors[u.tensors.front()].rows);  // it decides by which programs they travel
    mix(u.way.data(), u.way.size());
  }
  return h;
}

ExchangePlan make_plan(std::vector<TensorSpec> tensors, std::uint32_t ranks, const collective::LinkModel& link,
                       double forward_seconds, double backward_seconds, const std::string& way, double multiply_rate) {
  ExchangePlan best;
  best.ranks = ranks;
  best.link = link;
  best.forward_seconds = forward_seconds;
  best.backward_seconds = backward_seconds;
  best.multiply_rate = multiply_rate;
  best.tensors = std::move(tensors);
  const auto order = production_order(best.tensors);
  // Without a measured backward there is nothing to weigh packing against: pack what an operation's cost outweighs.
  static constexpr std::uint64_t kUnmeasured[] = {64 * 1024};
  static constexpr std::uint64_t kLimits[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  const bool measured = backward_seconds > 0;
  double best_end = -1;
  const auto try_packing = [&](const std::vector<bool>& by_factors) {
    for (auto limit : measured ? std::span<const std::uint64_t>(kLimits) : std::span<const std::uint64_t>(kUnmeasured)) {
      auto plan = best;
      plan.units = pack(plan.tensors, order, limit, by_factors);
      choose_ways(plan, way);
      const double end = price_units(plan);
      if (best_end < 0 || end < best_end * 0.995) {  // a larger unit must earn its place: it makes steps less smooth
        best_end = end;
        best.units = std::move(plan.units);
      }
    }
  };
  try_packing(std::vector<bool>(best.tensors.size(), false));
  // Bytes that hide behind backward cost nothing, a multiplication does: all by factors that are shorter so, or none.
  if (way == "auto") try_packing(shorter_by_factors(best));
  return best;
}

ExchangePlan priced_on(ExchangePlan plan, const collective::LinkModel& link) {
  plan.link = link;
  price_units(plan);
  return plan;
}

void check_fits(const ExchangePlan& plan, const std::vector<TensorSpec>& tensors, std::uint32_t ranks) {
  const auto refuse = [](const std::string& what) {
    throw Error(Code::mismatch, "the saved plan does not fit this run: " + what, "plan", "make a new one with --plan auto");
  };
  if (plan.ranks != ranks) {
    refuse("it is for " + std::to_string(plan.ranks) + " members, this run has " + std::to_string(ranks));
  }
  if (plan.tensors.size() != tensors.size()) {
    refuse("it has " + std::to_string(plan.tensors.size()) + " tensors, the model " + std::to_string(tensors.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto &a = plan.tensors[i], &b = tensors[i];
    if (a.name != b.name || a.type != b.type || a.count != b.count) {
      refuse("tensor " + std::to_string(i) + " is " + a.name + " (" + std::to_string(a.count) + " " + name(a.type) +
             "), the model's is " + b.name + " (" + std::to_string(b.count) + " " + name(b.type) + ")");
    }
  }
}

}  // namespace shoal::exchange
