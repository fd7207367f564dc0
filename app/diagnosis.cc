#include "app/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "shoal/collective/select.h"
#include "shoal/core/text.h"

namespace shoal::app {
namespace {

using collective::Collective;

constexpr double fcnet_parameters = 7'444'202, images = 128;
constexpr double fcnet_bytes = 4 * fcnet_parameters;
// Multiplications and additions of one image, forward: three 3x3 convolutions on 28, 14 and 7 pixels a side,
// three linear layers. Backward costs twice as much.
constexpr double fcnet_forward = 2.0 * (28 * 28 * 16 * 9 * 1 + 14 * 14 * 32 * 9 * 16 + 7 * 7 * 32 * 9 * 32 +
                                        1568 * 2048 + 2048 * 2048 + 2048 * 10);

std::uint32_t size_of(const Figures& figures) { return static_cast<std::uint32_t>(figures.members.size()); }

double all_reduce_seconds(const Figures& figures, double bytes) {
  const std::uint32_t ranks = size_of(figures);
  const auto name = collective::choose(Collective::all_reduce, ranks, bytes, figures.link);
  return collective::price(Collective::all_reduce, name, ranks, bytes, figures.link);
}

// The slowest member sets the pace of a synchronous step. 0 if any is unknown.
double slowest_flops(const Figures& figures) {
  double slowest = figures.members.empty() ? 0 : figures.members[0].flops;
  for (const Machine& machine : figures.members) slowest = std::min(slowest, machine.flops);
  return slowest;
}

std::string regime(const StepForecast& step) {
  const double ratio = step.communication / step.compute;
  if (ratio < 0.5) return "compute-bound: the exchange can hide behind the backward pass";
  if (ratio < 1.2) return "balanced: most of the exchange can hide, what is left over is the first layers'";
  return fmt::format(
      "network-bound: at best {} of each step is waiting; larger batches, gradient accumulation, or sending "
      "less help, "
      "more cores do not",
      show_seconds(step.communication - step.compute));
}

void append_members(const Figures& figures, std::string& text) {
  text +=
      fmt::format("{:<5} {:<16} {:<22} {:>5}  {}\n", "rank", "host", "address", "cores", "matrix product");
  for (std::size_t rank = 0; rank < figures.members.size(); ++rank) {
    const Machine& machine = figures.members[rank];
    const std::string rate = machine.flops > 0 ? fmt::format("{:.1f} GFLOP/s", machine.flops / 1e9)
                                               : "skipped: " + machine.no_flops;
    text += fmt::format("{:<5} {:<16} {:<22} {:>5}  {}\n", rank, machine.host, machine.address, machine.cores,
                        rate);
  }
}

void append_matrix(const Figures& figures, const char* title, std::string& text,
                   std::string (*cell)(const collective::PairFigures&)) {
  text += fmt::format("\n{}\n{:<8}", title, "from\\to");
  for (std::uint32_t to = 0; to < figures.pairs.size; ++to) text += fmt::format("{:>14}", to);
  for (std::uint32_t from = 0; from < figures.pairs.size; ++from) {
    text += fmt::format("\n{:<8}", from);
    for (std::uint32_t to = 0; to < figures.pairs.size; ++to) {
      text += fmt::format("{:>14}", from == to ? "-" : cell(figures.pairs.at(from, to)));
    }
  }
  text += "\n";
}

void append_meaning(const Figures& figures, std::string& text) {
  const StepForecast step = forecast_fcnet(figures);
  text += "\nwhat this means\n";
  if (size_of(figures) > 1) {
    text += fmt::format("  a step in pairs costs {} besides its bytes, {} when all send to all; a member moves {} each way, {} when all send to it; "
                        "it adds {}/s\n",
                        show_seconds(figures.link.alpha), show_seconds(figures.link.fan_in_alpha), show_rate(figures.link.rate),
                        show_rate(figures.link.fan_in), show_size(figures.link.add_rate));
    if (figures.link.saves > 0) text += fmt::format("  after a pause a link passes {} at once (a token bucket): short sums seem quicker than they are\n", show_size(figures.link.saves));
    text += fmt::format(
        "  all-reduce: 4 KB take {}, 1 MB {}, each further MB {}\n",
        show_seconds(all_reduce_seconds(figures, 4e3)), show_seconds(all_reduce_seconds(figures, 1e6)),
        show_seconds((all_reduce_seconds(figures, 65e6) - all_reduce_seconds(figures, 64e6))));
    text += fmt::format("  fcnet ({:.2f} M parameters, {:.0f} images a member): {} of exchange a step",
                        fcnet_parameters / 1e6, images, show_seconds(step.communication));
  } else {
    text += fmt::format("  fcnet ({:.2f} M parameters, {:.0f} images):", fcnet_parameters / 1e6, images);
  }
  if (step.compute > 0) {
    text += fmt::format("{} at least {} of compute a step\n", size_of(figures) > 1 ? ";" : "",
                        show_seconds(step.compute));
  } else {
    text += size_of(figures) > 1 ? "; compute was not measured\n" : " compute was not measured\n";
  }
  if (size_of(figures) == 1) {
    text += "  links: shoal doctor -n 4 [--lab NAME], or under shoal run on the machines in question\n";
  } else if (step.compute > 0) {
    text += fmt::format("  {}\n  both would be equal at {} a member\n", regime(step),
                        show_rate(step.balanced_rate));
  }
}

}  // namespace

StepForecast forecast_fcnet(const Figures& figures) {
  StepForecast step;
  const double flops = slowest_flops(figures);
  const double ranks = size_of(figures);
  if (flops > 0) step.compute = 3 * fcnet_forward * images / flops;
  if (ranks > 1) step.communication = all_reduce_seconds(figures, fcnet_bytes);
  if (flops > 0 && ranks > 1) step.balanced_rate = 2 * (ranks - 1) / ranks * fcnet_bytes / step.compute;
  return step;
}

std::string to_text(const Figures& figures) {
  std::string text;
  append_members(figures, text);
  if (figures.pairs.size > 1) {
    append_matrix(figures, "one way, 8 bytes", text,
                  [](const auto& pair) { return show_seconds(pair.latency); });
    append_matrix(figures, "rate alone", text, [](const auto& pair) { return show_rate(pair.rate_alone); });
    append_matrix(figures, "rate while all members send", text,
                  [](const auto& pair) { return show_rate(pair.rate_together); });
  }
  append_meaning(figures, text);
  return text;
}

std::string to_json(const Figures& figures) {
  using nlohmann::json;
  json members = json::array(), pairs = json::array();
  for (const Machine& machine : figures.members) {
    members.push_back({{"host", machine.host},
                       {"address", machine.address},
                       {"cores", machine.cores},
                       {"flops", machine.flops > 0 ? json(machine.flops) : json()}});
  }
  for (std::uint32_t from = 0; from < figures.pairs.size; ++from) {
    for (std::uint32_t to = 0; to < figures.pairs.size; ++to) {
      if (from == to) continue;
      const auto& pair = figures.pairs.at(from, to);
      pairs.push_back({{"from", from},
                       {"to", to},
                       {"latency_s", pair.latency},
                       {"rate_alone", pair.rate_alone},
                       {"rate_together", pair.rate_together}});
    }
  }
  const StepForecast step = forecast_fcnet(figures);
  json all{{"members", members}, {"pairs", pairs}};
  if (size_of(figures) > 1) {
    all["link"] = {
        {"alpha_s", figures.link.alpha}, {"rate", figures.link.rate}, {"add_rate", figures.link.add_rate}, {"fan_in", figures.link.fan_in}, {"fan_in_alpha_s", figures.link.fan_in_alpha}, {"saves", figures.link.saves}};
  }
  all["fcnet"] = {{"images", images},
                  {"communication_s", step.communication},
                  {"compute_s", step.compute > 0 ? json(step.compute) : json()}};
  return all.dump() + "\n";
}

}  // namespace shoal::app
