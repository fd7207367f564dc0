#include "app/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shoal/core/text.h"

namespace shoal::app {
namespace {

using exchange::rate_of;
using exchange::Regime;
using exchange::Unit;

constexpr std::size_t kMostUnits = 12;   // in the table of exposed times
constexpr std::size_t kMostLayers = 24;  // in that of the balance equations

std::string rate_or_never(double rate) { return std::isfinite(rate) ? show_rate(rate) : "no rate"; }

std::string says(Regime regime) {
  switch (regime) {
    case Regime::computing: return "the links are nearly idle: communication is no problem here";
    case Regime::order: return "gradients take less time than computing: the order in which they leave decides";
    case Regime::bytes: return "gradients take longer than computing: only fewer bytes help";
  }
  return "";
}

// The units that training waits for longest.
std::vector<const Unit*> longest(const exchange::ExchangePlan& plan) {
  std::vector<const Unit*> units;
  for (const auto& unit : plan.units) units.push_back(&unit);
  std::stable_sort(units.begin(), units.end(), [](const Unit* a, const Unit* b) { return a->predicted_exposed > b->predicted_exposed; });
  return units;
}

// What an all-reduce of large data comes to there, by the two extremes and by the quickest of what its form has.
std::string network(const collective::KnownNetwork& known) {
  std::string line = fmt::format("{}: large gradients at {} by trees, at {} by a ring", known.topology().name.empty() ? "the network" : known.topology().name,
                                 show_rate(rate_of(known, collective::kTrees)), show_rate(rate_of(known, "ring")));
  const char* const form = *std::ranges::max_element(collective::kForms, {}, [&](const char* name) { return rate_of(known, name); });
  constexpr double kAsFast = 1 + 1e-6;
  if (rate_of(known, form) > kAsFast * rate_of(known, "ring")) line += fmt::format(", at {} by {}", show_rate(rate_of(known, form)), form);
  return line + "\n\n";
}

std::string head(const PlanQuestion& q) {
  const auto& link = q.cluster.machine.link;
  return fmt::format("{}: {} parameters in {} layers, {:.3g} GFLOP forward a sample\n"
                     "{} members x {:g} samples, {} each, {} a step, {:.4g} GFLOP/s\n{}",
                     q.model.name, q.model.parameters(), q.model.layers.size(), q.model.forward_flops() / 1e9, q.cluster.members, q.cluster.samples,
                     show_rate(link.rate), show_seconds(link.alpha), q.cluster.machine.flops / 1e9, link.network ? network(*link.network) : "\n");
}

std::string summary(const PlanQuestion& q, const exchange::Forecast& f) {
  const auto& it = f.chosen;
  return fmt::format("an iteration    {} by {}, of which {} compute and {} wait; the gradients take {} on the links\n"
                     "a member sends  {}\n"
                     "speed-up        {:.2f} with {} members\n"
                     "limit           {}: {}\n",
                     show_seconds(it.seconds), to_text(q.choice), show_seconds(it.computing), show_seconds(std::max(0.0, it.seconds - it.computing)),
                     show_seconds(it.on_the_link), show_size(it.bytes), it.speedup(), q.cluster.members, name(f.regime),
                     says(f.regime));
}

std::string ways(const exchange::Forecast& f) {
  std::string text = fmt::format("\n{:<24}{:>12}{:>12}{:>10}{:>12}\n", "way", "iteration", "sends", "speed-up", "over DDP");
  for (const auto& row : f.rows) {
    text += fmt::format("{:<24}{:>12}{:>12}{:>10.2f}{:>11.2f}x{}\n", row.choice, show_seconds(row.seconds), show_size(row.bytes), row.speedup,
                        row.gain, row.exact ? "" : "  not exact");
  }
  return text;
}

std::string tensors(const exchange::ExchangePlan& plan) {
  const auto units = longest(plan);
  std::string text = fmt::format("\n{:<40}{:>10}{:>20}{:>12}{:>12}{:>12}\n", "tensor", "gradient", "way", "memory", "takes", "exposed");
  for (std::size_t i = 0; i < std::min(kMostUnits, units.size()); ++i) {
    text += fmt::format("{:<40}{:>10}{:>20}{:>12}{:>12}{:>12}\n", plan.name_of(*units[i]), show_size(static_cast<double>(plan.bytes_of(*units[i]))),
                        units[i]->way, name(placement_of(*units[i])), show_seconds(units[i]->predicted_seconds), show_seconds(units[i]->predicted_exposed));
  }
  if (units.size() > kMostUnits) {
    const auto add = [](double sum, const Unit* u) { return sum + u->predicted_exposed; };
    const double rest = std::accumulate(units.begin() + kMostUnits, units.end(), 0.0, add);
    text += fmt::format("{:<94}{:>12}\n", fmt::format("{} more", units.size() - kMostUnits), show_seconds(rest));
  }
  return text;
}

std::string scaling(const exchange::Forecast& f) {
  if (f.scaling.empty()) return "";
  std::string text = fmt::format("\n{:<12}{:>12}{:>10}{:>10}\n", "members", "iteration", "speed-up", "DDP's");
  for (const auto& at : f.scaling) {
    text += fmt::format("{:<12}{:>12}{:>10.2f}{:>10.2f}\n", at.members, show_seconds(at.seconds), at.speedup, at.ddp_speedup);
  }
  return text;
}

std::string break_even(const exchange::Forecast& f) {
  if (f.break_even.empty()) return "";
  std::string text = fmt::format("\n{:<56}{:>14}\n", "true from this rate on", "a member");
  for (const auto& b : f.break_even) text += fmt::format("{:<56}{:>14}\n", b.what, rate_or_never(b.rate));
  return text;
}

std::string balance(const PlanQuestion& q, const PlanAnswer& answer) {
  const auto& layers = answer.balance;
  if (layers.empty() || q.cluster.members < 2) return "";
  std::string text = fmt::format("\nbalance of Das et al.: this cluster does {:.0f} operations in the time of a byte\n",
                                 exchange::system_balance(q.cluster.machine));
  text += fmt::format("{:<32}{:>8}{:>10}{:>12}{:>12}{:>12}{:>8}{:>8}\n", "layer", "share", "ops/byte", "data", "model", "best", "groups", "G*");
  for (std::size_t i = 0; i < std::min(kMostLayers, layers.size()); ++i) {
    const auto& b = layers[i];
    text += fmt::format("{:<32}{:>8}{:>10.0f}{:>12}{:>12}{:>12}{:>8}{:>8.1f}\n", b.layer, b.share(), b.flops_a_byte, show_size(b.data),
                        show_size(b.model), show_size(b.hybrid), b.groups, b.best_groups);
  }
  if (layers.size() > kMostLayers) text += fmt::format("{} more: --json has them\n", layers.size() - kMostLayers);
  const double alone = answer.forecast.chosen.computing * q.cluster.members;
  return text + fmt::format("an iteration divided like this: {}, speed-up {:.2f}\n", show_seconds(answer.balanced_seconds),
                            alone / answer.balanced_seconds);
}

}  // namespace

std::string to_text(const PlanQuestion& question, const PlanAnswer& answer) {
  const auto& f = answer.forecast;
  return head(question) + summary(question, f) + ways(f) + tensors(f.chosen.plan) + scaling(f) + break_even(f) + balance(question, answer);
}

}  // namespace shoal::app
