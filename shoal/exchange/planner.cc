#include "shoal/exchange/planner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/exchange/plan_price.h"

namespace shoal::exchange {
namespace {

using collective::Collective;
using Policy = Choice::Policy;
using Ways = std::vector<std::string>;  // by tensor; "": the cheapest all-reduce for the unit that it comes into

struct Packing {
  std::uint64_t limit;    // bytes of a unit of several tensors
  bool buckets = false;   // as DistributedDataParallel's: closed once they have reached the limit, the first at kFirstBucket
};
constexpr std::uint64_t kFirstBucket = 1 << 20;

// Registration order reversed is what backward nearly always does; measured times correct it.
std::vector<std::uint32_t> production_order(const std::vector<TensorSpec>& tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.rbegin(), order.rend(), 0u);
  const bool measured = std::all_of(tensors.begin(), tensors.end(), [](const TensorSpec& t) { return t.backward_at >= 0; });
  if (measured) {
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].backward_at < tensors[b].backward_at; });
  }
  return order;
}

// A tensor above the limit travels alone, straight from the gradient's own memory; so does one whose way does not pack. Smaller ones
// of one type and way are gathered, in the order in which backward produces them, until the limit is full; a large one between them does
// not part them. Units stand in the order in which they are complete.
// Tensors of different turns are never packed together.
std::vector<Unit> pack(const std::vector<TensorSpec>& tensors, const std::vector<std::uint32_t>& order, const Packing& packing,
                       const Ways& ways, const std::vector<std::uint32_t>& turns) {
  struct Open {
    Unit unit;
    std::uint64_t bytes = 0;
    std::size_t last = 0;     // place in `order` of its last tensor
    std::size_t closed = 0;   // units of this kind before it
  };
  std::map<std::tuple<DType, std::string, std::uint32_t>, Open> open;
  std::vector<std::pair<std::size_t, Unit>> complete;
  const auto close = [&](Open& pack) {
    complete.emplace_back(pack.last, std::move(pack.unit));
    pack = {{}, 0, 0, pack.closed + 1};
  };
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto& tensor = tensors[order[place]];
    const auto& way = ways[order[place]];
    const auto bytes = tensor.count * size_of(tensor.type);
    const bool alone = !way.empty() && !way_named(way)->packs();
    if (alone || (!packing.buckets && bytes > packing.limit)) {
      complete.emplace_back(place, Unit{.tensors = {order[place]}, .way = way, .turn = turns[order[place]]});
      continue;
    }
    auto& pack = open[{tensor.type, way, turns[order[place]]}];
    if (!packing.buckets && !pack.unit.tensors.empty() && pack.bytes + bytes > packing.limit) close(pack);
    pack.unit.tensors.push_back(order[place]);
    pack.unit.way = way;
    pack.unit.turn = turns[order[place]];
    pack.bytes += bytes;
    pack.last = place;
    if (packing.buckets && pack.bytes >= (pack.closed == 0 ? kFirstBucket : packing.limit)) close(pack);
  }
  for (auto& [kind, pack] : open) {
    if (!pack.unit.tensors.empty()) close(pack);
  }
  std::sort(complete.begin(), complete.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Unit> units;
  for (auto& [place, unit] : complete) units.push_back(std::move(unit));
  return units;
}

// In which turn each tensor travels: neighbours share one, and each has about as many bytes. Fewer turns, where tensors are too large for so many.
std::vector<std::uint32_t> fragments_of(const std::vector<TensorSpec>& tensors, std::uint32_t fragments) {
  const auto bytes_of = [](const TensorSpec& t) { return static_cast<double>(t.count * size_of(t.type)); };
  const double all =
      std::accumulate(tensors.begin(), tensors.end(), 0.0, [&](double sum, const TensorSpec& t) { return sum + bytes_of(t); });
  std::vector<std::uint32_t> turns;
  double before = 0, last = -1;
  std::uint32_t turn = 0;
  for (const auto& t : tensors) {
    const double fragment = all > 0 ? std::floor(fragments * (before + bytes_of(t) / 2) / all) : 0;
    if (last >= 0 && fragment > last) ++turn;
    last = fragment;
    before += bytes_of(t);
    turns.push_back(turn);
  }
  return turns;
}

class Planner {
 public:
  Planner(ExchangePlan empty, const Choice& choice, const Compute& compute)
      : best_(std::move(empty)),
        choice_(choice),
        busy_(compute.crowded ? compute.processor_seconds : 0),
        by_parameter_(compute.parameter_seconds * static_cast<double>(best_.tensors.size()) +
                      (compute.crowded ? kByParameterCrowded : kByParameter) * (best_.forward_seconds + best_.backward_seconds)),
        order_(production_order(best_.tensors)),
        turns_(fragments_of(best_.tensors, choice.rounds ? choice.rounds->fragments : 1)) {
    for (std::uint32_t groups = 1; groups < best_.ranks; ++groups) {
      if (best_.servers == 0 && best_.ranks % groups == 0) divisions_.push_back(kHybrid + std::to_string(groups));
    }
  }

  // The best of each order of sending, by a search of its own: what suits one leads the other astray.
  ExchangePlan choose() {
    const ExchangePlan empty = best_;
    std::optional<ExchangePlan> chosen;
    double least = 0;
    for (const Order order : orders()) {
      best_ = empty;
      score_ = -1;
      search(order);
      if (chosen && score_ >= least * kEarns) continue;
      chosen = best_;
      least = score_;
    }
    return *std::move(chosen);
  }

 private:
  void search(Order order) {
    sends_in_ = order;
    ways_ = settled_ways();
    consider(ways_, packings());
    if (order == Order::priority && rings_keep_order()) {
      Ways rings = ways_;
      for (std::size_t t = 0; t < rings.size(); ++t) {
        if (rings[t].empty() && !is_rounded_by_step(best_.tensors[t].type)) rings[t] = kByRing;
      }
      consider(rings, packings());
    }
    // Bytes that hide behind backward cost nothing, arithmetic does: so all that are shorter by another way, then each for itself.
    const auto free = free_to_choose();
    if (!free.empty()) {
      Ways shorter = ways_, fewer = ways_;
      for (auto t : free) {
        shorter[t] = shortest(t, {"", alternative(t)});
        fewer[t] = alternative(t) == kByFactors && fewer_numbers(t) ? kByFactors : "";
      }
      consider(shorter, packings());
      if (fewer != shorter) consider(fewer, packings());
      consider_division(free);
      for (auto t : std::span(free).first(std::min(free.size(), kMostSingly))) {
        for (const auto& way : {std::string(), alternative(t), shortest(t, divisions(t))}) {
          Ways other = ways_;
          if (std::exchange(other[t], way) != way) consider(other, std::span(&packing_, 1));
        }
      }
    }
  }

  // Where one member's bytes alone come over a link its sender's order holds (plan_price.cc); a ring has more steps, which cost processors time.
  bool rings_keep_order() const {
    return best_.workers() > 2 && best_.servers == 0 && !best_.link.network && !best_.link.tuning && best_.operation_seconds == 0;
  }

  bool measured() const { return best_.backward_seconds > 0; }

  // What policy and overrides settle before anything is priced.
  Ways settled_ways() const {
    Ways ways(best_.tensors.size());
    for (std::size_t t = 0; t < ways.size(); ++t) {
      const auto& tensor = best_.tensors[t];
      if (choice_.policy == Policy::way) ways[t] = choice_.way;
      if (choice_.policy == Policy::poseidon && fewer_numbers(t)) ways[t] = kByFactors;
      if (const auto* way = choice_.override_of(tensor.name)) ways[t] = *way;
      if (!ways[t].empty() && !way_named(ways[t])->carries(tensor)) ways[t].clear();  // no factors, or not measured yet; too small
      if (tensor.sparse) ways[t] = kByRows;
    }
    if (choice_.policy == Policy::way) check_way(choice_.way);
    for (const auto& o : choice_.overrides) {
      check_way(o.way);
      const bool matches = std::any_of(best_.tensors.begin(), best_.tensors.end(), [&](const TensorSpec& t) { return o.matches(t.name); });
      if (!matches && !best_.tensors.empty()) {
        throw Error(Code::invalid_argument, "\"" + o.glob + "\" matches no tensor of the model", "plan",
                    "its tensors have names like " + best_.tensors.front().name);
      }
    }
    return ways;
  }

  void check_way(const std::string& name) const {
    const auto way = way_named(name);
    way->check(best_.ranks);
    if (best_.servers == 0 || name == served_by(best_.servers)) return;
    if (!way->divides() && !name.starts_with(kServers)) return;  // divided among all members, of which some compute nothing
    throw Error(Code::invalid_argument, name + " in a run with " + std::to_string(best_.servers) + " that only serve", "plan",
                "leave it to auto, or say " + served_by(best_.servers));
  }

  // The exact way beside the cheapest all-reduce that leaves a tensor whole: of a layer's weight its factors, of a table its rows. "": there is none.
  std::string alternative(std::size_t t) const {
    const auto& tensor = best_.tensors[t];
    if (tensor.rows > 0 && best_.multiply_rate > 0) return kByFactors;
    return tensor.touched > 0 && !tensor.sparse ? kByRows : "";
  }

  // Those that leave this layer to the members of groups (strips.h): few groups exchange more activations, many more gradients.
  Ways divisions(std::size_t t) const {
    Ways ways;
    for (const auto& way : divisions_) {
      if (measured() && way_named(way)->carries(best_.tensors[t])) ways.push_back(way);
    }
    return ways;
  }

  // The same groups for every layer that has less to do so, and each layer in the groups that suit it best.
  void consider_division(std::span<const std::uint32_t> free) {
    const auto consider_where_shorter = [&](const auto& candidates) {
      Ways divided = ways_;
      for (auto t : free) {
        for (const auto& way : candidates(t)) divided[t] = shortest(t, {divided[t], way});
      }
      if (divided != ways_) consider(divided, packings());
    };
    for (const auto& way : divisions_) {
      consider_where_shorter([&](std::size_t t) { return divisions(t).empty() ? Ways() : Ways{way}; });
    }
    consider_where_shorter([&](std::size_t t) { return divisions(t); });
  }

  std::vector<std::uint32_t> free_to_choose() const {
    std::vector<std::uint32_t> free;
    if (choice_.policy != Policy::automatic) return free;
    for (std::uint32_t t = 0; t < best_.tensors.size(); ++t) {
      const bool has_other = !alternative(t).empty() || !divisions(t).empty();
      if (has_other && choice_.override_of(best_.tensors[t].name) == nullptr) free.push_back(t);
    }
    // The largest first: they decide, and there may be hundreds.
    std::stable_sort(free.begin(), free.end(), [&](auto a, auto b) { return best_.tensors[a].count > best_.tensors[b].count; });
    return free;
  }

  bool fewer_numbers(std::size_t t) const {
    const auto& tensor = best_.tensors[t];
    return tensor.rows > 0 && factor::fewer_numbers(tensor.layer(), tensor.rows, best_.ranks);
  }

  // By which of these ways link and arithmetic together take least (research/sync.md 1.4); the first of equals, and "" of none.
  std::string shortest(std::uint32_t t, const Ways& ways) const {
    std::string least;
    double seconds = -1;
    for (const auto& way : ways) {
      const auto carried_by = way.empty() ? whole_way(best_, Unit{.tensors = {t}, .way = {}}) : way;
      const double taken = cost_of(best_, Unit{.tensors = {t}, .way = carried_by}).seconds();
      if (seconds < 0 || taken < seconds) least = way, seconds = taken;
    }
    return least;
  }

  // Of a whole gradient: the cheapest all-reduce of the workers, or by the servers, where there are some and that is shorter.
  static std::string whole_way(const ExchangePlan& plan, Unit unit) {
    std::string way = collective::choose(Collective::all_reduce, plan.workers(), static_cast<double>(plan.bytes_of(unit)), plan.link);
    if (plan.servers == 0) return way;
    const auto seconds = [&](const std::string& by) {
      unit.way = by;
      return cost_of(plan, unit).seconds();
    };
    const std::string served = served_by(plan.servers);
    return seconds(served) < seconds(way) ? served : way;
  }

  std::span<const Packing> packings() const {
    // Without a measured backward there is nothing to weigh packing against: pack what an operation's cost outweighs.
    static constexpr Packing kUnmeasured[] = {{64 * 1024}};
    static constexpr Packing kLimits[] = {{16 << 10}, {64 << 10}, {256 << 10}, {1 << 20}, {4 << 20}, {16 << 20}, {64 << 20},
                                          {25'000'000, true}};  // DistributedDataParallel's default: never slower than the obvious
    if (choice_.policy == Policy::ddp) return std::span(&buckets_, 1);
    return measured() || choice_.rounds ? std::span<const Packing>(kLimits) : std::span<const Packing>(kUnmeasured);
  }

  std::vector<Order> orders() const {
    const bool known = best_.forward_seconds > 0 && measured() &&
                       std::all_of(best_.tensors.begin(), best_.tensors.end(), [](const TensorSpec& t) { return t.forward_at >= 0; });
    if (!known || in_order_of_production()) return {Order::fifo};
    if (choice_.policy == Policy::p3) return {Order::priority};
    return {Order::fifo, Order::priority};
  }
  bool in_order_of_production() const {
    return choice_.policy == Policy::wfbp || choice_.policy == Policy::ddp || choice_.policy == Policy::poseidon;
  }

  // Keeps the best of these ways in these packings.
  void consider(const Ways& ways, std::span<const Packing> packings) {
    for (const Packing packing : packings) {
      auto plan = best_;
      plan.units = pack(plan.tensors, order_, packing, ways, turns_);
      complete(plan);
      const bool divides = std::any_of(plan.units.begin(), plan.units.end(), is_divided);
      plan.order = divides ? Order::fifo : sends_in_;  // these are stepped together
      prioritise(plan);
      const double seconds = price_units(plan);
      const double score = seconds * (divides ? kDivided : 1) + (plan.order == Order::priority ? by_parameter_ : 0) +
                           (busy_ > 0 ? std::min(1.0, busy_ / seconds) * hidden_products(plan, seconds) : 0);
      if (score_ >= 0 && score >= score_ * kEarns && !saves_operations(plan, score)) continue;
      score_ = score;
      best_ = std::move(plan);
      packing_ = packing;
      ways_ = ways;
    }
  }

  // Fewer operations are less for processors to do, whatever else comes out as foreseen.
  bool saves_operations(const ExchangePlan& plan, double score) const {
    return score < score_ && plan.operating_seconds() < best_.operating_seconds();
  }

  void complete(ExchangePlan& plan) const {
    for (auto& unit : plan.units) {
      const auto bytes = static_cast<double>(plan.bytes_of(unit));
      if (unit.way.empty()) unit.way = whole_way(plan, unit);
      unit.slice_bytes = way_named(unit.way)->slice_bytes(load_of(plan, unit));
      if (choice_.policy == Policy::p3 && choice_.bytes > 0) unit.slice_bytes = p3_slice(bytes);
    }
  }

  static void prioritise(ExchangePlan& plan) {
    for (std::uint32_t u = 0; u < plan.units.size(); ++u) {
      auto& unit = plan.units[u];
      unit.priority = u;
      if (plan.order == Order::fifo) continue;
      unit.priority = plan.tensors[unit.tensors.front()].first_use;
      for (auto t : unit.tensors) unit.priority = std::min(unit.priority, plan.tensors[t].first_use);
    }
  }

  // At most a member's part of the unit, in whole cache lines.
  std::uint32_t p3_slice(double bytes) const {
    constexpr std::uint64_t kLine = 64;
    const auto part = std::min(choice_.bytes, static_cast<std::uint64_t>(bytes) / best_.ranks);
    return static_cast<std::uint32_t>(std::max((part + kLine - 1) / kLine, std::uint64_t{1}) * kLine);
  }

  static constexpr std::size_t kMostSingly = 64;
  static constexpr double kEarns = 0.995;  // a larger unit must earn its place: it makes steps less smooth
  // Besides what each parameter takes, a part of what is computed: where members share cores, what hides from one takes another's time. Four on two cores took up to
  // 4 % more than foreseen, beside what they took in order of production (docs/training-measured.md).
  static constexpr double kByParameter = 0.01, kByParameterCrowded = 0.04;
  // Strips are laid out after each step for whoever looks at the whole, and a look fetches them: what the play does not see, either.
  static constexpr double kDivided = 1.1;

  ExchangePlan best_;
  const Choice& choice_;
  const double busy_;  // seconds of an iteration in which crowded cores are; 0: one is idle
  const double by_parameter_;
  const std::vector<std::uint32_t> order_, turns_;
  const Packing buckets_{choice_.bytes, true};
  Ways divisions_;  // by which so many members can go
  Order sends_in_ = Order::fifo;  // of this search
  double score_ = -1;             // of best_; -1: there is none
  Packing packing_{0};
  Ways ways_;
};

}  // namespace

ExchangePlan make_plan(std::vector<TensorSpec> tensors, std::uint32_t ranks, const collective::LinkModel& link, const Compute& compute,
                       const Choice& choice, std::uint32_t servers) {
  if (choice.served) throw Error(Code::invalid_argument, "ps has no plan: parameters are served from tables, and nothing is to be chosen", "plan");
  ExchangePlan plan;
  plan.ranks = ranks;
  plan.servers = servers;
  plan.choice = to_text(choice);
  plan.link = link;
  plan.tensors = std::move(tensors);
  if (choice.rounds) {  // whole, and nothing to hide behind
    for (auto& t : plan.tensors) {
      t.backward_at = t.forward_at = -1;
      t.rows = t.width = t.touched = 0;
      t.sparse = false;
    }
  } else {
    plan.forward_seconds = compute.forward_seconds;
    plan.backward_seconds = compute.backward_seconds;
    plan.step_seconds = compute.step_seconds;
    plan.multiply_rate = compute.multiply_rate;
    plan.own_rate = compute.own_rate;
    plan.operation_seconds = compute.operation_seconds;
  }
  return Planner(std::move(plan), choice, compute).choose();
}

}  // namespace shoal::exchange
