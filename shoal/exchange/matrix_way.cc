#include "shoal/exchange/matrix_way.h"

#include <algorithm>

namespace shoal::exchange {
namespace {

constexpr double kKeyBytes = 8;
constexpr double kSteps = 3;     // one behind the other: push, request, answer
constexpr double kPlaceBytes = 3;  // of a row among factors, about: its key and its entries, both as differences

}  // namespace

std::string name(MatrixWay way) {
  switch (way) {
    case MatrixWay::rows: return "rows";
    case MatrixWay::all_rows: return "all rows";
    default: return "factors";
  }
}

MatrixPrice price(MatrixWay way, const MatrixLoad& load, std::uint32_t ranks, const collective::LinkModel& link, double multiply_rate) {
  const double others = ranks - 1, away = others / ranks;  // the share of rows that others serve
  const double product = 2 * load.entries * load.width / multiply_rate;  // of one member's factors
  if (way == MatrixWay::factors) {
    const double index = load.vectors <= 256 ? 1 : load.vectors <= 65536 ? 2 : 4;
    const double update = load.vectors * load.width * load.element_bytes + load.entries * (sizeof(float) + index) + load.touched * kPlaceBytes;
    // Each update is added to the settled rows, and most then copied; this member's own a second time, to be seen at once.
    return {way, others * update / link.rate + (ranks + 1) * product + link.alpha, others * update};
  }
  const bool all = way == MatrixWay::all_rows;
  const double row = load.width * load.element_bytes + (all ? 0 : kKeyBytes);
  const double pushed = (all ? load.rows : load.touched) * row * away;
  const double pulled = (all ? load.rows : load.pushed ? load.changed : load.touched) * row * away;  // as much as this member serves
  const double asked = all || load.pushed ? 0 : load.touched * kKeyBytes * away;
  const double sent = pushed + pulled + asked;
  return {way, sent / link.rate + product + (pushed + pulled) / link.add_rate + kSteps * link.alpha, sent};
}

std::array<MatrixPrice, 3> prices(const MatrixLoad& load, std::uint32_t ranks, const collective::LinkModel& link, double multiply_rate) {
  std::array<MatrixPrice, 3> all;
  for (const MatrixWay way : {MatrixWay::rows, MatrixWay::all_rows, MatrixWay::factors}) {
    all[static_cast<std::size_t>(way)] = price(way, load, ranks, link, multiply_rate);
  }
  std::ranges::stable_sort(all, {}, &MatrixPrice::seconds);
  return all;
}

}  // namespace shoal::exchange
