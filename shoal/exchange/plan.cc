#include "shoal/exchange/plan.h"

#include <algorithm>
#include <numeric>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/exchange/way.h"

namespace shoal::exchange {

std::uint64_t ExchangePlan::bytes_of(const Unit& unit) const {
  std::uint64_t bytes = 0;
  for (auto t : unit.tensors) bytes += tensors[t].count * size_of(tensors[t].type);
  return bytes;
}

std::uint32_t ExchangePlan::turns() const {
  std::uint32_t last = 0;
  for (const auto& unit : units) last = std::max(last, unit.turn);
  return last + 1;
}

std::string ExchangePlan::name_of(const Unit& unit) const {
  const auto& first = tensors[unit.tensors.front()].name;
  if (unit.tensors.size() == 1) return first;
  return first + " and " + std::to_string(unit.tensors.size() - 1) + " more";
}

double ExchangePlan::predicted_exposed() const {
  return std::accumulate(units.begin(), units.end(), 0.0, [](double s, const Unit& u) { return s + u.predicted_exposed; });
}

double ExchangePlan::stepping_seconds() const {
  if (settled) return step_seconds;
  double all = 0, own = 0;  // bytes, as the step's time goes
  for (const auto& unit : units) {
    const auto bytes = static_cast<double>(bytes_of(unit));
    all += bytes;
    own += way_named(unit.way)->owned() ? bytes / ranks : bytes;
  }
  return all > 0 ? step_seconds * own / all : step_seconds;
}

Placement placement_of(const Unit& unit) {
  const auto way = way_named(unit.way);
  if (!way->is_sized()) return Placement::size_first;
  if (!way->exact() || way->groups() > 0) return Placement::made;
  return unit.tensors.size() > 1 ? Placement::packed : Placement::in_place;
}

const char* name(Placement placement) {
  switch (placement) {
    case Placement::in_place: return "in place";
    case Placement::packed: return "packed";
    case Placement::made: return "made";
    case Placement::size_first: return "size first";
  }
  return "";
}

bool is_all_reduce(const Unit& unit) {
  return is_program(unit.way);
}

std::uint64_t ExchangePlan::hash() const {
  Fnv1a h;
  const auto mix = [&h](const void* data, std::size_t size) { h.add_bytes({static_cast<const std::byte*>(data), size}); };
  const auto mix_number = [&mix](std::uint64_t v) { mix(&v, sizeof v); };
  const auto mix_text = [&](const std::string& text) {
    mix_number(text.size());
    mix(text.data(), text.size());
  };
  mix_number(ranks);
  if (servers > 0) mix_number(servers);  // other plans keep the hashes that they had
  if (!std::all_of(units.begin(), units.end(), is_all_reduce)) {
    for (const double figure : {link.alpha, link.rate, link.add_rate, link.fan_in, link.fan_in_alpha}) mix(&figure, sizeof figure);
  }
  if (link.network) mix_text(link.network->to_json());
  if (link.tuning) mix_text(link.tuning->text());
  for (const auto& t : tensors) {
    mix_text(t.name);
    mix_number(static_cast<std::uint64_t>(t.type));
    mix_number(t.count);
    // By which programs rows travel, and as what.
    for (const auto v : {t.rows, t.outputs, t.width, t.touched, std::uint64_t{t.sparse}, std::uint64_t{t.bf16_rows}}) mix_number(v);
    mix(&t.filled, sizeof t.filled);
  }
  for (const auto& u : units) {
    mix_number(u.tensors.size());
    for (auto t : u.tensors) mix_number(t);
    mix_text(u.way);
    mix_number(u.turn);
  }
  if (const auto rounds = parse_choice(choice, "plan").rounds) {
    for (const auto v : {rounds->steps, rounds->fragments}) mix_number(v);
    for (const auto v : {rounds->rate, rounds->momentum}) mix(&v, sizeof v);
  }
  return h.value();
}

void check_fits(const ExchangePlan& plan, const std::vector<TensorSpec>& tensors, std::uint32_t ranks, std::uint32_t servers) {
  const auto refuse = [](const std::string& what) {
    throw Error(Code::mismatch, "the saved plan does not fit this run: " + what, "plan", "make a new one with --plan auto");
  };
  if (plan.ranks != ranks) {
    refuse("it is for " + std::to_string(plan.ranks) + " members, this run has " + std::to_string(ranks));
  }
  if (plan.servers != servers) {
    refuse(std::to_string(plan.servers) + " of its members are servers, of this run's " + std::to_string(servers));
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
    if (a.sparse != b.sparse) refuse("the gradient of " + a.name + " is " + (a.sparse ? "sparse" : "dense") + " there, not in this model");
  }
}

}  // namespace shoal::exchange
