#include "shoal/collective/congestion.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "shoal/collective/layout.h"
#include "shoal/collective/unroll.h"
#include "shoal/topo/fair_shares.h"
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

// visit(rank, peer, chunk) for every transfer, by sender.
template <typename Visit>
void each_send(const Program& program, Visit visit) {
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    for (const Lane& lane : program.lanes[rank]) {
      for (const Loop& loop : lane) {
        for (const Op& op : loop.ops) {
          if (op.kind != OpKind::send) continue;
          for (std::uint32_t i = 0; i < loop.times; ++i) visit(rank, peer_of(program, op, i), chunk_of(program, op, i));
        }
      }
    }
  }
}

// visit(earlier) for every instance whose data this one takes, or that it waits for by name.
template <typename Visit>
void data_before(const Unrolled& all, std::uint32_t i, Visit visit) {
  const auto see = [&](std::uint32_t earlier) { earlier == kNone ? void() : visit(earlier); };
  for (std::size_t k = 0; k < all.op(i).after.size(); ++k) see(all.after(i, k));
  for (std::uint32_t window = 0; window < all.place(i).windows; ++window) see(all.writer_of(i, window));
  if (receives(all.op(i))) see(all.instances[i].partner);
}

// And for those before it in its lane and, of a send, in its receiver's, whose turn comes first; and for who is to empty the window that it fills.
template <typename Visit>
void turn_before(const Unrolled& all, std::uint32_t i, Visit visit) {
  const auto in_lane = [&](std::uint32_t at) { at > all.row_begin[all.place(at).row] ? visit(at - 1) : void(); };
  in_lane(i);
  if (all.op(i).kind == OpKind::send) in_lane(all.instances[i].partner);
  if (all.reader_of(i) != kNone && all.earlier_write[i] != kNone) visit(all.reader[all.earlier_write[i]]);
}

// Runs whole chunks: what waits for nothing more, the earliest first.
class Timeline {
 public:
  Timeline(const Program& program, const topo::Topology& topology)
      : program_(program), topology_(topology), all_(unroll(program)), part_(parts(program)), open_(all_.instances.size(), 0), next_(open_.size()),
        ready_(open_.size(), 0), depth_(open_.size(), 0), free_(topology.links.size(), 0), added_(program.ranks, 0), routes_(topology) {
    for (std::uint32_t i = 0; i < open_.size(); ++i) {
      const auto wait_for = [&](std::uint32_t earlier) {
        next_[earlier].push_back(i);
        ++open_[i];
      };
      data_before(all_, i, wait_for);
      turn_before(all_, i, wait_for);
    }
  }

  Course to_the_end() {
    for (std::uint32_t i = 0; i < open_.size(); ++i) {
      if (open_[i] == 0) due_.emplace(0, i);
    }
    Course course;
    double last = 0;
    while (!due_.empty()) {
      const auto [time, i] = due_.top();
      due_.pop();
      const double done = run(i, time);
      last = std::max(last, done);
      course.steps = std::max(course.steps, depth_[i]);
      for (const std::uint32_t later : next_[i]) {
        ready_[later] = std::max(ready_[later], done);
        if (--open_[later] == 0) due_.emplace(ready_[later], later);
      }
    }
    course.rate = last > 0 ? 1 / last : 0;
    course.added = *std::max_element(added_.begin(), added_.end());
    course.chunk = *std::max_element(part_.begin(), part_.end());
    return course;
  }

 private:
  double run(std::uint32_t i, double time) {  // when it is done
    const Iterated& at = all_.place(i);
    const std::uint32_t chunk = all_.instances[i].chunk;
    data_before(all_, i, [&](std::uint32_t earlier) { depth_[i] = std::max(depth_[i], depth_[earlier]); });
    if (at.op->kind == OpKind::receive_reduce) added_[at.rank] += part_[chunk];
    if (at.op->kind == OpKind::fold) added_[at.rank] += part_[chunk] * static_cast<double>(at.op->sources.size() - 1);
    if (at.op->kind != OpKind::send) return time;
    ++depth_[i];
    double done = time;
    for (const std::uint32_t link : routes_.path(at.rank, peer_of(program_, *at.op, all_.iteration(at, i)), passes_switches(program_, chunk))) {
      free_[link] = std::max(free_[link], time) + part_[chunk] / topology_.links[link].rate;
      done = std::max(done, free_[link]);
    }
    return done;
  }

  const Program& program_;
  const topo::Topology& topology_;
  const Unrolled all_;
  const std::vector<double> part_;
  std::vector<std::uint32_t> open_;                                // [instance]: of those that it waits for
  std::vector<std::vector<std::uint32_t>> next_;                   // [instance]: who waits for it
  std::vector<double> ready_;                                      // [instance]
  std::vector<std::uint32_t> depth_;                               // [instance]: sends that its data have behind them, itself included
  std::vector<double> free_;                                       // [link]: when it has carried all that came
  std::vector<double> added_;                                      // [rank]
  topo::Routes routes_;
  using Due = std::pair<double, std::uint32_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

// Chunks on their ways, each at one pace.
class Paces {
 public:
  Paces(const Program& program, const topo::Topology& topology) : topology_(topology), left_(parts(program)), ways_(left_.size()) {
    topo::Routes routes(topology);
    each_send(program, [&](std::uint32_t rank, std::uint32_t to, std::uint32_t chunk) {
      const auto path = routes.path(rank, to, passes_switches(program, chunk));
      ways_[chunk].insert(ways_[chunk].end(), path.begin(), path.end());
    });
    for (std::uint32_t chunk = 0; chunk < ways_.size(); ++chunk) {
      if (left_[chunk] > 0 && !ways_[chunk].empty()) open_.push_back(chunk);
    }
  }

  double to_the_end() {  // seconds for one unit of data
    constexpr double kRounding = 1 + 1e-9;  // what ends within it ends together
    double time = 0;
    while (!open_.empty()) {
      share();
      double next = std::numeric_limits<double>::infinity();
      for (std::uint32_t i = 0; i < open_.size(); ++i) next = std::min(next, left_[open_[i]] / paces_.rate(i));
      for (std::uint32_t i = 0; i < open_.size(); ++i) left_[open_[i]] -= paces_.rate(i) * next * kRounding;
      std::erase_if(open_, [&](std::uint32_t chunk) { return left_[chunk] <= 0; });
      time += next;
    }
    return time;
  }

 private:
  void share() {
    paces_.clear();
    for (const topo::Link& link : topology_.links) paces_.add_link(link.rate);
    for (const std::uint32_t chunk : open_) paces_.add_flow(ways_[chunk]);
    paces_.solve();
  }

  const topo::Topology& topology_;
  std::vector<double> left_;                                       // [chunk]: of all data
  std::vector<std::vector<std::uint32_t>> ways_;                   // [chunk]: the links of all its hops
  std::vector<std::uint32_t> open_;                                // chunks under way
  topo::FairShares paces_;                                         // of the open ones
};

}  // namespace

Congestion congestion(const Program& program, const topo::Topology& topology) {
  const std::vector<double> part = parts(program);
  std::vector<double> load(topology.links.size(), 0);  // of all data
  topo::Routes routes(topology);
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, double> sent;  // from whom to whom, and whether past links
  each_send(program, [&](std::uint32_t rank, std::uint32_t to, std::uint32_t chunk) { sent[{rank, to, passes_switches(program, chunk)}] += part[chunk]; });
  for (const auto& [way, share] : sent) {
    const auto [from, to, by_switches] = way;
    for (const std::uint32_t link : routes.path(from, to, by_switches)) load[link] += share;
  }
  Congestion busy;
  double most = 0;
  for (std::uint32_t link = 0; link < load.size(); ++link) {
    const double time = load[link] / topology.links[link].rate;
    if (time > most) most = time, busy = {link, 1 / time};
  }
  return busy;
}

double even_rate(const Program& program, const topo::Topology& topology) {
  const double time = Paces(program, topology).to_the_end();
  return time > 0 ? 1 / time : 0;
}

Course course(const Program& program, const topo::Topology& topology) { return Timeline(program, topology).to_the_end(); }

}  // namespace shoal::collective
