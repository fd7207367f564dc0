// plan.json: read by people, replayed by runs. Every number that decides bits is written exactly.
#include <algorithm>

#include "shoal/exchange/json_reader.h"
#include "shoal/exchange/plan.h"
#include "shoal/exchange/way.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kMostRows = std::uint64_t{1} << 32;
constexpr const char* kPlanHint = "is this a plan.json of a Shoal run?";

const char* name(Order order) { return order == Order::priority ? "priority" : "fifo"; }

Order read_order(const Reader& root) {
  const auto text = root.text_or("order", "fifo");
  for (const auto order : {Order::fifo, Order::priority}) {
    if (text == name(order)) return order;
  }
  root.bad("order", "is \"" + text + "\", neither fifo nor priority");
}

Unit read_unit(const Reader& r, std::size_t tensors, std::vector<bool>& seen) {
  Unit unit;
  for (const auto& t : r.list("tensors")) {
    if (!t.is_number_unsigned() || t.get<std::uint64_t>() >= tensors) r.bad("tensors", "names a tensor that is not there");
    const auto index = t.get<std::uint32_t>();
    if (seen[index]) r.bad("tensors", "names tensor " + std::to_string(index) + " a second time");
    seen[index] = true;
    unit.tensors.push_back(index);
  }
  if (unit.tensors.empty()) r.bad("tensors", "is empty");
  unit.way = r.text("way");
  try {
    way_named(unit.way);
  } catch (const Error& error) {
    r.bad("way", "is \"" + unit.way + "\", not a way that this build has: " + error.fact());
  }
  unit.slice_bytes = static_cast<std::uint32_t>(r.whole("slice_bytes", 1u << 30));
  if (unit.slice_bytes == 0) r.bad("slice_bytes", "is 0");
  unit.priority = static_cast<std::uint32_t>(r.whole("priority", UINT32_MAX));
  unit.turn = static_cast<std::uint32_t>(r.whole_or("turn", tensors - 1, 0));
  unit.predicted_seconds = r.number("predicted_seconds", 0);
  unit.predicted_exposed = r.number("predicted_exposed", 0);
  return unit;
}

}  // namespace

std::string to_json(const ExchangePlan& plan) {
  Json tensors = Json::array(), units = Json::array();
  for (const auto& t : plan.tensors) {
    tensors.push_back({{"name", t.name}, {"type", name(t.type)}, {"count", t.count}, {"first_use", t.first_use}, {"backward_at", t.backward_at}});
    if (t.forward_at >= 0) tensors.back()["forward_at"] = t.forward_at;
    const auto add = [&](const char* key, std::uint64_t value) {
      if (value > 0) tensors.back()[key] = value;
    };
    if (t.filled < 1) tensors.back()["filled"] = t.filled;
    if (t.wire_share < 1) tensors.back()["wire_share"] = t.wire_share;
    add("rows", t.rows);
    add("outputs", t.outputs);
    add("width", t.width);
    add("touched", t.touched);
    add("sparse", t.sparse);
    add("bf16_rows", t.bf16_rows);
    add("divisible", t.divisible);
    add("takes_data", t.takes_data);
    add("by_element", t.by_element);
  }
  for (const auto& u : plan.units) {
    units.push_back({{"name", plan.name_of(u)}, {"tensors", u.tensors}, {"bytes", plan.bytes_of(u)}, {"way", u.way},
                     {"memory", name(placement_of(u))}, {"slice_bytes", u.slice_bytes}, {"priority", u.priority},
                     {"predicted_seconds", u.predicted_seconds}, {"predicted_exposed", u.predicted_exposed}});
    if (u.turn > 0) units.back()["turn"] = u.turn;
  }
  Json link = {{"alpha", plan.link.alpha}, {"rate", plan.link.rate}, {"add_rate", plan.link.add_rate},
               {"fan_in", plan.link.fan_in}, {"fan_in_alpha", plan.link.fan_in_alpha}};
  if (plan.link.saves > 0) link["saves"] = plan.link.saves;
  Json json = {{"version", 1}, {"choice", plan.choice}, {"order", name(plan.order)}, {"ranks", plan.ranks}, {"link", link},
                     {"forward_seconds", plan.forward_seconds}, {"backward_seconds", plan.backward_seconds},
                     {"step_seconds", plan.step_seconds}, {"predicted_seconds", plan.predicted_seconds()}, {"multiply_rate", plan.multiply_rate},
                     {"tensors", tensors}, {"units", units}};
  if (plan.own_rate > 0) json["own_rate"] = plan.own_rate;
  if (plan.servers > 0) json["servers"] = plan.servers;
  if (plan.measured_iterations != ExchangePlan().measured_iterations) json["measured_iterations"] = plan.measured_iterations;
  if (plan.settled) json["settled"] = 1;
  if (plan.placing_seconds > 0) json["placing_seconds"] = plan.placing_seconds;
  if (plan.processor_seconds > 0) json["processor_seconds"] = plan.processor_seconds;
  if (plan.operation_seconds > 0) json["operation_seconds"] = plan.operation_seconds;
  if (plan.link.tuning) json["tune"] = plan.link.tuning->text();
  if (plan.link.network) json["network"] = Json::parse(plan.link.network->to_json());
  return json.dump(1) + "\n";
}

ExchangePlan plan_from_json(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where, kPlanHint);
  const Reader root(json, "plan", where, kPlanHint);
  if (root.whole("version", 1000) != 1) root.bad("version", "is not 1");
  ExchangePlan plan;
  plan.ranks = static_cast<std::uint32_t>(root.whole("ranks", 4096));
  if (plan.ranks == 0) root.bad("ranks", "is 0");
  plan.servers = static_cast<std::uint32_t>(root.whole_or("servers", plan.ranks - 1, 0));
  plan.choice = to_text(parse_choice(root.text_or("choice", "auto"), where + ": plan.choice"));
  plan.order = read_order(root);
  const auto link = root.object("link");
  plan.link = {.alpha = link.number("alpha", 0), .rate = link.number("rate", 1), .add_rate = link.number("add_rate", 1), .fan_in = link.number("fan_in", 0),
               .fan_in_alpha = link.number("fan_in_alpha", 0), .saves = link.number_or("saves", 0, 0)};
  if (json.contains("tune")) plan.link.tuning = std::make_shared<const collective::Tuning>(root.text("tune"), where + ": plan.tune");
  if (json.contains("network")) plan.link.network = collective::KnownNetwork::from_json(json["network"].dump(), where + ": plan.network");
  plan.forward_seconds = root.number("forward_seconds", 0);
  plan.backward_seconds = root.number("backward_seconds", 0);
  plan.step_seconds = root.number_or("step_seconds", 0, 0);    // plans of older builds have none, nor what else is read by an _or
  plan.measured_iterations = root.whole_or("measured_iterations", plan.measured_iterations, plan.measured_iterations);
  if (plan.measured_iterations == 0) root.bad("measured_iterations", "is 0");
  plan.settled = root.whole_or("settled", 1, 0) == 1;
  plan.placing_seconds = root.number_or("placing_seconds", 0, 0);
  plan.processor_seconds = root.number_or("processor_seconds", 0, 0);
  plan.operation_seconds = root.number_or("operation_seconds", 0, 0);
  plan.multiply_rate = root.number_or("multiply_rate", 0, 0);
  plan.own_rate = root.number_or("own_rate", 0, 0);
  root.each("tensors", [&](const Reader& r) {
    plan.tensors.push_back({r.text("name"), r.element_type("type"), r.whole("count", std::uint64_t{1} << 48),
                            static_cast<std::uint32_t>(r.whole("first_use", UINT32_MAX)), r.number("backward_at", -1),
                            r.whole_or("rows", kMostRows, 0), r.whole_or("outputs", kMostRows, 0), r.number_or("forward_at", -1, -1),
                            r.whole_or("width", kMostRows, 0), r.whole_or("touched", kMostRows, 0), r.whole_or("sparse", 1, 0) == 1,
                            r.number_or("filled", 0, 1), r.whole_or("bf16_rows", 1, 0) == 1, r.whole_or("divisible", 1, 0) == 1,
                            r.whole_or("takes_data", 1, 0) == 1, r.whole_or("by_element", 1, 0) == 1, r.number_or("wire_share", 0, 1)});
    const auto& t = plan.tensors.back();
    if ((t.rows > 0 || t.outputs > 0) && (t.outputs == 0 || t.count % t.outputs != 0)) r.bad("outputs", "does not divide the tensor");
    if (t.filled > 1) r.bad("filled", "is more than 1");
    if (t.wire_share > 1) r.bad("wire_share", "is more than 1");
    if (t.bf16_rows && (t.rows == 0 || t.type != DType::f32)) r.bad("bf16_rows", "is of a tensor that is no layer's in f32");
    if ((t.sparse || t.touched > 0 || t.width > 0) && (t.width == 0 || t.count % t.width != 0)) r.bad("width", "does not divide the tensor");
  });
  std::vector<bool> seen(plan.tensors.size(), false);
  root.each("units", [&](const Reader& r) {
    plan.units.push_back(read_unit(r, plan.tensors.size(), seen));
    const auto& unit = plan.units.back();
    for (auto t : unit.tensors) {
      if (plan.tensors[t].type != plan.tensors[unit.tensors.front()].type) root.bad("units", "pack tensors of two types into one");
    }
    const auto way = way_named(unit.way);
    if (unit.tensors.size() > 1 && !way->packs()) root.bad("units", "pack several tensors by " + unit.way);
    const auto& first = plan.tensors[unit.tensors.front()];
    try {
      way->check(plan.ranks);
    } catch (const Error& error) {
      root.bad("units", "send " + first.name + " by " + unit.way + ": " + error.fact());
    }
    if (first.sparse && unit.way != kByRows) root.bad("units", "send " + first.name + ", whose gradient is sparse, by " + unit.way);
    if (!way->carries(first)) root.bad("units", "send " + first.name + " by " + unit.way + ", which cannot carry it");
  });
  const auto rounds = parse_choice(plan.choice, where).rounds;
  std::vector<bool> taken(plan.turns());
  for (const auto& unit : plan.units) taken[unit.turn] = true;
  if (taken.size() > (rounds ? rounds->fragments : 1) || std::find(taken.begin(), taken.end(), false) != taken.end()) {
    root.bad("units", "take " + std::to_string(taken.size()) + " turns, which the choice " + plan.choice + " has not");
  }
  for (std::size_t t = 0; t < seen.size(); ++t) {
    if (!seen[t]) root.bad("units", "leave out tensor " + plan.tensors[t].name);
  }
  return plan;
}

}  // namespace shoal::exchange
