#include "shoal/learn/matrix_choice.h"

#include <algorithm>
#include <utility>

#include "shoal/collective/probe.h"
#include "shoal/core/text.h"
#include "shoal/learn/memory.h"

namespace shoal::learn {
namespace {

using exchange::MatrixWay;

constexpr double kWorthIt = 0.9;  // of what the way in use takes

std::string told(const exchange::MatrixPrice& price) {
  return exchange::name(price.way) + " " + show_seconds(price.seconds) + " and " + show_size(price.sent);
}

}  // namespace

MatrixChoice::MatrixChoice(net::Transport& transport, table::Worker& worker, Of of)
    : transport_(transport), of_(std::move(of)), sums_(worker, of_.name + "-load", 6) {}

MatrixChoice::Load MatrixChoice::load(const exchange::MatrixLoad& own) {
  const double whole = of_.rows * of_.width * of_.element_bytes;
  const bool room = has_memory(2 * whole), room_for_both = has_memory(4 * whole);
  const auto all = sums_.sum({own.vectors, own.entries, own.touched, of_.multiply_rate, room ? 0.0 : 1.0, room_for_both ? 0.0 : 1.0});
  const double size = transport_.size();
  return {.mean = {.vectors = all[0] / size,
                   .entries = all[1] / size,
                   .touched = all[2] / size,
                   .changed = std::min(of_.rows, all[2]),
                   .rows = of_.rows,
                   .width = of_.width,
                   .element_bytes = of_.element_bytes,
                   .pushed = of_.pushed},
          .multiply_rate = all[3] / size,
          .room = all[4] == 0,
          .room_for_both = all[5] == 0};
}

MatrixChoice::Answer MatrixChoice::answer(const Load& load) {
  const collective::LinkModel slowest{.alpha = 1e-3, .rate = 1e6 / 8}, quickest{.alpha = 30e-6, .rate = 25e9 / 8};
  const auto price_on = [&](MatrixWay way, const auto& link) { return exchange::price(way, load.mean, transport_.size(), link, load.multiply_rate); };
  const auto factors_win = [&](const auto& link) { return price_on(MatrixWay::factors, link).seconds < price_on(MatrixWay::rows, link).seconds; };
  const bool factors = factors_win(slowest);
  if (factors != factors_win(quickest)) return measured(load, 1);
  const auto sent = [&](MatrixWay way) { return show_size(price_on(way, slowest).sent); };
  return {.factors = factors,
          .why = "quicker on any links of 1 Mbit/s to 25 Gbit/s; rows are " + sent(MatrixWay::rows) + " a clock, factors " + sent(MatrixWay::factors)};
}

MatrixChoice::Answer MatrixChoice::answer_again(const Load& load, bool factors_now) {
  return measured(load, factors_now ? 1 / kWorthIt : kWorthIt);
}

// Factors, if they take less than that part of what rows do.
MatrixChoice::Answer MatrixChoice::measured(const Load& load, double factors_at_most) {
  const auto link = collective::probe(transport_, take_operations(collective::kProbeOperations), transport_.now() + of_.patience);
  const auto seconds = [&](MatrixWay way) { return exchange::price(way, load.mean, transport_.size(), link, load.multiply_rate).seconds; };
  const auto all = exchange::prices(load.mean, transport_.size(), link, load.multiply_rate);
  const bool factors = seconds(MatrixWay::factors) < factors_at_most * seconds(MatrixWay::rows);
  return {.factors = factors,
          .by_links = true,
          .seconds = seconds(factors ? MatrixWay::factors : MatrixWay::rows),
          .why = "predicted for a clock: " + told(all[0]) + ", " + told(all[1]) + ", " + told(all[2])};
}

bool MatrixChoice::any(bool own) { return sums_.sum({own ? 1.0 : 0.0, 0, 0, 0, 0, 0})[0] > 0; }

std::uint64_t MatrixChoice::take_operations(std::uint64_t count) {
  return net::operation_in(of_.channel, std::exchange(next_operation_, next_operation_ + count));
}

}  // namespace shoal::learn
