#include <map>
#include <utility>

#include "shoal/collective/layout.h"
#include "shoal/collective/synthesize.h"
#include "shoal/topo/routes.h"

namespace shoal::collective {

namespace {

// The part of all data that each chunk is.
std::vector<double> parts(const Program& program) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  const Layout layout = Layout::even(program, 0, kMany);
  std::vector<double> parts;
  for (const std::uint64_t count : layout.count) parts.push_back(static_cast<double>(count) / static_cast<double>(kMany));
  return parts;
}

}  // namespace

Congestion congestion(const Program& program, const topo::Topology& topology) {
  const std::vector<double> part = parts(program);
  std::vector<double> load(topology.links.size(), 0);  // of all data
  topo::Routes routes(topology);
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (std::uint32_t lane = 0; lane < program.lanes[rank].size(); ++lane) {
      std::map<std::pair<std::uint32_t, bool>, double> sent;  // to whom, and whether past links
      for (const Loop& loop : program.lanes[rank][lane]) {
        for (const Op& op : loop.ops) {
          if (op.kind != OpKind::send) continue;
          for (std::uint32_t i = 0; i < loop.times; ++i) {
            const std::uint32_t chunk = chunk_of(program, op, i);
            sent[{peer_of(program, op, i), passes_switches(program, chunk)}] += part[chunk];
          }
        }
      }
      for (const auto& [to, share] : sent) {
        for (const std::uint32_t link : routes.path(rank, to.first, lane, to.second)) load[link] += share;
      }
    }
  }
  Congestion busy;
  double most = 0;
  for (std::uint32_t link = 0; link < load.size(); ++link) {
    const double time = load[link] / topology.links[link].rate;
    if (time > most) most = time, busy = {link, 1 / time};
  }
  return busy;
}

}  // namespace shoal::collective
