#include "shoal/exchange/leg.h"

#include <algorithm>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/exchange/choice.h"

namespace shoal::exchange {
namespace {

// Of legs that run side by side the longest counts.
template <class Of>
double sum(const std::vector<Leg>& legs, const Of& of) {
  double all = 0, longest = 0;
  for (const Leg& leg : legs) {
    if (!leg.beside) all += std::exchange(longest, 0);
    longest = std::max(longest, of(leg));
  }
  return all + longest;
}

}  // namespace

double seconds(const std::vector<Leg>& legs, Leg::When when, std::uint32_t ranks, const collective::LinkModel& link) {
  return sum(legs, [&](const Leg& leg) {
    return leg.when == when ? collective::price(leg.collective, leg.program, leg.size(ranks), leg.wire_share * leg.bytes(), link) : 0;
  });
}

double busiest_bytes(const std::vector<Leg>& legs, std::uint32_t ranks) {
  return sum(legs, [&](const Leg& leg) {
    return collective::busiest_bytes(leg.collective, leg.program, leg.size(ranks), leg.bytes());
  });
}

collective::Program program_of(const Leg& leg, std::uint32_t ranks, const collective::KnownNetwork* network) {
  if (const auto servers = servers_of(leg.program)) return collective::served_all_reduce(leg.size(ranks), servers);
  return collective::program_named(leg.collective, leg.program, leg.size(ranks), 0, network).program();
}

collective::Layout layout_of(const Leg& leg, const collective::Program& program, std::uint32_t rank) {
  if (leg.chunks.empty()) return collective::Layout::even(program, rank, leg.elements);
  collective::Layout layout;
  layout.count = leg.chunks;
  return layout;
}

}  // namespace shoal::exchange
