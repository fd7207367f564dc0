#include "shoal/collective/congestion.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "shoal/collective/layout.h"
#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"
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

// [instance]: how many sends its data have behind them, itself included.
std::vector<std::uint32_t> sends_behind(const Unrolled& all) {
  std::vector<std::uint32_t> behind(all.instances.size(), 0);
  for (const std::uint32_t i : order_of(all)) {
    const Op& op = all.op(i);
    const auto wait_for = [&](std::uint32_t earlier) { behind[i] = earlier == kNone ? behind[i] : std::max(behind[i], behind[earlier]); };
    for (std::size_t k = 0; k < op.after.size(); ++k) wait_for(all.after(i, k));
    for (std::uint32_t window = 0; window < all.place(i).windows; ++window) wait_for(all.writer_of(i, window));
    if (receives(op)) wait_for(all.instances[i].partner);
    if (op.kind == OpKind::send) ++behind[i];
  }
  return behind;
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

Rounds rounds(const Program& program, const topo::Topology& topology) {
  const std::vector<double> part = parts(program);
  const Unrolled all = unroll(program);
  const std::vector<std::uint32_t> behind = sends_behind(all);
  std::vector<std::map<std::uint32_t, double>> load;  // [round]: of all data, by link
  std::vector<double> added(program.ranks, 0);
  topo::Routes routes(topology);
  for (std::uint32_t i = 0; i < all.instances.size(); ++i) {
    const Iterated& at = all.place(i);
    const std::uint32_t chunk = all.instances[i].chunk;
    if (at.op->kind == OpKind::receive_reduce) added[at.rank] += part[chunk];
    if (at.op->kind == OpKind::fold) added[at.rank] += part[chunk] * static_cast<double>(at.op->sources.size() - 1);
    if (at.op->kind != OpKind::send) continue;
    load.resize(std::max<std::size_t>(load.size(), behind[i]));
    const std::uint32_t peer = peer_of(program, *at.op, all.iteration(at, i));
    for (const std::uint32_t link : routes.path(at.rank, peer, at.lane, passes_switches(program, chunk))) load[behind[i] - 1][link] += part[chunk];
  }
  double time = 0;
  for (const auto& round : load) {
    double most = 0;
    for (const auto& [link, share] : round) most = std::max(most, share / topology.links[link].rate);
    time += most;
  }
  return {static_cast<std::uint32_t>(load.size()), time > 0 ? 1 / time : 0, *std::max_element(added.begin(), added.end())};
}

}  // namespace shoal::collective
