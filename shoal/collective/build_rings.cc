#include "shoal/collective/build_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

// One ring, chunk c, four members: the sum begins after the owner and ends with it, then the whole chunk goes round. Partial sums lie in
// the output: they are overwritten when the whole chunk comes, never before they were sent.
//
//     c+1 --g[c+1]--> c+2 --+g[c+2]--> c+3 --+g[c+3]--> c: whole --> c+1 --> c+2 --> c+3
//
// Patarasuk and Yuan, JPDC 69 (2009).

// A member has two lanes of each pass for its rings, and behind all of these, pass after pass, four of each line, at its ends two: how many in front of
// those of pass `number`.
std::uint32_t lanes_before_line(const Rings& rings, std::size_t number, std::uint32_t place) {
  std::uint32_t lanes = 2 * static_cast<std::uint32_t>(rings.passes.size());
  for (std::size_t pass = 0; pass < number; ++pass) {
    const std::optional<std::uint32_t> line = line_of(rings.passes[pass], rings.sizes, rings.open);
    if (!line) continue;
    const std::uint32_t stride = std::accumulate(rings.sizes.begin(), rings.sizes.begin() + *line, 1U, std::multiplies<>());
    const std::uint32_t at = place / stride % rings.sizes[*line];
    lanes += at == 0 || at + 1 == rings.sizes[*line] ? 2 : 4;
  }
  return lanes;
}

// What one member does in one pass. The pass has a *shard* for every place, numbered by the place's coordinates in the order of the pass,
// the first one counting most; then what a phase speaks of is a few descending runs of shards:
//
//     phase k, T shards below each coordinate: those of coordinate v are  prefix + v T + T - 1, ..., prefix + v T
class Walk {
 public:
  struct Run {
    std::uint32_t start = 0, count = 0;  // shards start, start - 1, ..., modulo all
  };

  Walk(Author& author, const Rings& rings, std::uint32_t number, std::uint32_t place)
      : author_(author), rings_(rings), pass_(rings.passes[number]), number_(number), rank_(rings.members[place]),
        shards_(static_cast<std::uint32_t>(rings.members.size())), place_(place), line_(line_of(pass_, rings.sizes, rings.open)),
        sends_(2 * number), receives_(2 * number + 1), inward_(lanes_before_line(rings, number, place)), outward_(inward_ + 2) {
    std::uint32_t stride = 1;
    for (const std::uint32_t size : rings.sizes) {
      strides_.push_back(stride);
      coordinates_.push_back(place / stride % size);
      stride *= size;
    }
    held_.push_back({all(), kInput, false, {}});
  }

  // A leaf's data comes first. `whole`: it is the last that is added.
  void take_in(std::uint32_t leaf, std::uint32_t leaf_lane, bool whole) {
    const std::uint32_t lane = author_.lane(rank_);
    receive_all(lane, all(), [&](const Run& run, const Held& held) {
      Op op = receive_reduce(leaf, leaf_lane, chunk(run.start), held.site, kOutput);
      op.completes = whole;
      return op;
    });
  }
  // All of the result, as it came.
  void hand_out(std::uint32_t leaf) {
    const std::uint32_t lane = author_.lane(rank_);
    result_lane_ = lane;
    for (const Run& run : result_) send_all(lane, leaf, run);
  }
  std::uint32_t result_lane() const { return result_lane_; }
  const std::vector<Run>& result() const { return result_; }  // in the order in which it comes to be known

  void reduce_scatter() {
    std::uint32_t below = shards_;
    for (std::size_t k = 0; k < pass_.order.size(); ++k) {
      const std::uint32_t size = this->size(k), x = coordinate(k);
      below /= size;
      if (is_line(k)) {
        result_ = {{prefix_ + size - 1, size}};
        return to_middle(k, result_[0]);
      }
      if (size > 1) {
        const bool last = below == 1;
        for (const Run& run : runs(below, size, x + size - 2, size - 2)) add(receives_, neighbour(k, -1), sends_, run, false);
        for (const Run& run : runs(below, size, x, 1)) add(receives_, neighbour(k, -1), sends_, run, last);
        for (const Run& run : runs(below, size, x + size - 1, size - 1)) send_all(sends_, neighbour(k, 1), run);
      }
      prefix_ += x * below;
    }
    result_ = {{prefix_, 1}};
  }

  void all_gather() {
    std::uint32_t below = 1;
    for (std::size_t k = pass_.order.size(); k-- > 0;) {
      const std::uint32_t size = this->size(k), x = coordinate(k);
      if (is_line(k)) {
        from_middle(k, result_[0]);
        below *= size;
        continue;
      }
      prefix_ -= x * below;
      if (size > 1) {
        const auto others = runs(below, size, x + size - 1, size - 1);
        for (const Run& run : others) {
          write(receives_, run, stepping(receive(neighbour(k, -1), sends_, chunk(run.start), kOutput), step()));
        }
        result_.insert(result_.end(), others.begin(), others.end());
        for (const Run& run : runs(below, size, x, 1)) send_all(sends_, neighbour(k, 1), run);
        for (const Run& run : runs(below, size, x + size - 1, size - 2)) send_all(sends_, neighbour(k, 1), run);
      }
      below *= size;
    }
  }

  std::uint32_t chunk(std::uint32_t shard) const { return shard * passes() + number_; }
  std::int32_t step() const { return -static_cast<std::int32_t>(passes()); }
  Run all() const { return {shards_ - 1, shards_}; }

 private:
  struct Held {          // where the newest value of some shards is, and the loop that wrote it there, iteration by iteration
    Run run;
    Site site;
    bool written = false;  // the input needs no wait
    Mark by;
  };

  std::uint32_t passes() const { return static_cast<std::uint32_t>(rings_.passes.size()); }
  std::uint32_t size(std::size_t k) const { return rings_.sizes[pass_.order[k]]; }
  bool is_line(std::size_t k) const { return line_ == pass_.order[k]; }
  bool is_folded(std::size_t k) const { return !rings_.open.empty() && rings_.open[pass_.order[k]] && !is_line(k); }
  // Where it is on the ring or line along the k-th dimension. Backward, places count from the other end.
  std::uint32_t coordinate(std::size_t k) const {
    const std::uint32_t at = coordinates_[pass_.order[k]], x = is_folded(k) ? unfolded(at, size(k)) : at;
    return pass_.backward ? size(k) - 1 - x : x;
  }
  std::uint32_t beside(std::size_t k, std::int32_t by) const {  // the place
    const std::uint32_t dimension = pass_.order[k], at = coordinates_[dimension];
    const std::uint32_t to = around(is_folded(k) ? unfolded(at, size(k)) : at, pass_.backward ? -by : by, size(k));
    return place_ - at * strides_[dimension] + (is_folded(k) ? folded(to, size(k)) : to) * strides_[dimension];
  }
  std::uint32_t neighbour(std::size_t k, std::int32_t by) const { return rings_.members[beside(k, by)]; }
  std::uint32_t inward_of(std::uint32_t place) const { return lanes_before_line(rings_, number_, place); }

  // Along a line: what comes from the end, and the own, goes on to the middle, which has somebody on either side: what comes from behind it, and goes back there,
  // has the lanes of the outward way.
  void to_middle(std::size_t k, const Run& run) {
    const std::uint32_t last = size(k) - 1, middle = last / 2, x = coordinate(k);
    const std::int32_t inward = x <= middle ? 1 : -1;
    if (x > 0 && x < last) add(inward_ + kReceives, neighbour(k, -inward), inward_of(beside(k, -inward)) + kSends, run, false);
    if (x == middle) return add(outward_ + kReceives, neighbour(k, 1), inward_of(beside(k, 1)) + kSends, run, true);
    send_all(inward_ + kSends, neighbour(k, inward), run);
  }
  // And the sum back, at once. At an end nothing came inward: one lane to receive is enough.
  void from_middle(std::size_t k, const Run& run) {
    const std::uint32_t last = size(k) - 1, middle = last / 2, x = coordinate(k);
    if (x == middle) {
      send_all(inward_ + kSends, neighbour(k, -1), run);
      return send_all(outward_ + kSends, neighbour(k, 1), run);
    }
    const bool at_end = x == 0 || x == last;
    const std::int32_t outward = x < middle ? -1 : 1;
    const std::uint32_t lane = inward_of(beside(k, -outward)) + (x + 1 == middle ? kSends : outward_ - inward_ + kSends);
    write((at_end ? inward_ : outward_) + kReceives, run, stepping(receive(neighbour(k, -outward), lane, chunk(run.start), kOutput), step()));
    if (!at_end) send_all(outward_ + kSends, neighbour(k, outward), run);
  }

  // The shards below `count` coordinates, down from `v` and round; each with `below`.
  std::vector<Run> runs(std::uint32_t below, std::uint32_t size, std::uint32_t v, std::uint32_t count) const {
    v %= size;
    const Run run{prefix_ + v * below + below - 1, count * below};
    if (count == 0) return {};
    if (below * size == shards_ || count <= v + 1) return {run};
    const std::uint32_t first = (v + 1) * below;
    return {{run.start, first}, {prefix_ + size * below - 1, run.count - first}};
  }

  // Calls visit(part, held) for the parts of `run` that were written by one loop each.
  template <typename Visit>
  void parts(Run run, Visit visit) const {
    const auto down = [&](std::uint32_t from, std::uint32_t to) { return (from + shards_ - to) % shards_; };
    while (run.count > 0) {
      std::uint32_t count = run.count;
      std::size_t k = held_.size() - 1;
      for (; down(held_[k].run.start, run.start) >= held_[k].run.count; --k) {
        count = std::min(count, down(run.start, held_[k].run.start));  // there a newer one begins
      }
      if (held_[k].written) count = std::min(count, held_[k].run.count - down(held_[k].run.start, run.start));
      visit(Run{run.start, count}, held_[k]);
      run = {(run.start + shards_ - count % shards_) % shards_, run.count - count};
    }
  }

  Op after_held(Op op, const Run& run, const Held& held) const {
    op = stepping(std::move(op), step());
    if (!held.written) return op;
    return after(std::move(op), held.by, static_cast<std::int32_t>((held.run.start + shards_ - run.start) % shards_));
  }

  void send_all(std::uint32_t lane, std::uint32_t peer, const Run& run) {
    parts(run, [&](const Run& part, const Held& held) {
      author_.add(rank_, lane, after_held(send(peer, chunk(part.start), held.site), part, held), part.count);
    });
  }

  void write(std::uint32_t lane, const Run& run, Op op) {
    held_.push_back({run, kOutput, true, author_.add(rank_, lane, std::move(op), run.count)});
  }

  template <typename OpOf>
  void receive_all(std::uint32_t lane, const Run& run, OpOf op_of) {
    std::vector<std::pair<Run, Op>> ops;
    parts(run, [&](const Run& part, const Held& held) { ops.emplace_back(part, after_held(op_of(part, held), part, held)); });
    for (auto& [part, op] : ops) write(lane, part, std::move(op));
  }

  void add(std::uint32_t lane, std::uint32_t from, std::uint32_t from_lane, const Run& run, bool whole) {
    receive_all(lane, run, [&](const Run& part, const Held& held) {
      Op op = receive_reduce(from, from_lane, chunk(part.start), held.site, kOutput);
      op.completes = whole;
      return op;
    });
  }

  Author& author_;
  const Rings& rings_;
  const Pass& pass_;
  const std::uint32_t number_, rank_, shards_, place_;
  const std::optional<std::uint32_t> line_;
  const std::uint32_t sends_, receives_;              // lanes, of these numbers at every member of a ring
  const std::uint32_t inward_, outward_;              // of a line: the first of two lanes each way, so that both are under way at once
  std::uint32_t prefix_ = 0;                          // of the shards that are its own in the phases so far
  std::uint32_t result_lane_ = 0;
  std::vector<std::uint32_t> strides_, coordinates_;  // [dimension]
  std::vector<Held> held_;                            // newer ones further back
  std::vector<Run> result_;
};

void check(const std::string& name, const Rings& rings) {
  const auto refuse = [&](const std::string& what) { throw Error(Code::invalid_argument, what, name); };
  std::uint64_t places = 1;
  for (const std::uint32_t size : rings.sizes) places = std::min<std::uint64_t>(places * size, kMaxRanks + 1);
  if (places != rings.members.size()) refuse(fmt::format("{} members at {} places", rings.members.size(), places));
  const std::size_t ranks = rings.members.size() + rings.leaves.size();
  std::vector<std::uint32_t> seen = rings.members;
  for (const Leaf& leaf : rings.leaves) {
    if (std::find(rings.members.begin(), rings.members.end(), leaf.host) == rings.members.end()) {
      refuse(fmt::format("rank {} hangs on rank {}, which is in no ring", leaf.rank, leaf.host));
    }
    seen.push_back(leaf.rank);
  }
  std::sort(seen.begin(), seen.end());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (seen[rank] != rank) refuse(fmt::format("rank {} of {} is {}", std::min(rank, seen[rank]), ranks, seen[rank] < rank ? "there twice" : "missing"));
  }
  if (rings.passes.empty()) refuse("no pass");
  for (const Pass& pass : rings.passes) {
    std::vector<std::uint32_t> order = pass.order, dimensions(rings.sizes.size());
    std::sort(order.begin(), order.end());
    std::iota(dimensions.begin(), dimensions.end(), 0U);
    if (order != dimensions) refuse(fmt::format("a pass that is no order of {} dimensions", dimensions.size()));
  }
}

AddOrder order_of_addition(const Rings& rings) {
  const bool plain = rings.sizes.size() == 1 && rings.leaves.empty() && rings.passes.size() == 1 && !rings.passes[0].backward &&
                     !line_of(rings.passes[0], rings.sizes, rings.open) && std::is_sorted(rings.members.begin(), rings.members.end());
  return plain ? AddOrder::rotated : AddOrder::tree;
}

}  // namespace

std::vector<Pass> one_pass(std::size_t dimensions) {
  Pass pass;
  for (std::uint32_t k = 0; k < dimensions; ++k) pass.order.push_back(k);
  return {pass};
}

std::vector<Pass> all_passes(std::size_t dimensions) {
  std::vector<Pass> passes;
  for (Pass pass = one_pass(dimensions)[0]; passes.size() < 2 * dimensions; std::rotate(pass.order.begin(), pass.order.begin() + 1, pass.order.end())) {
    for (const bool backward : {false, true}) passes.push_back({pass.order, backward});
  }
  return passes;
}

std::optional<std::uint32_t> line_of(const Pass& pass, const std::vector<std::uint32_t>& sizes, const std::vector<bool>& open) {
  const auto last = std::find_if(pass.order.rbegin(), pass.order.rend(), [&](std::uint32_t dimension) { return sizes[dimension] > 1; });
  if (open.empty() || last == pass.order.rend() || !open[*last] || sizes[*last] == 2) return std::nullopt;
  return *last;
}

Program ring_program(std::string name, const Rings& rings) {
  const auto ranks = static_cast<std::uint32_t>(rings.members.size() + rings.leaves.size());
  Author author(name, Collective::all_reduce, ranks, order_of_addition(rings));
  check(name, rings);
  if (ranks == 1) return alone(std::move(name), Collective::all_reduce, order_of_addition(rings));
  const auto passes = static_cast<std::uint32_t>(rings.passes.size()), shards = static_cast<std::uint32_t>(rings.members.size());
  author.chunks(passes * shards);
  std::vector<std::vector<Leaf>> leaves(ranks);  // [host]
  for (const Leaf& leaf : rings.leaves) leaves[leaf.host].push_back(leaf);
  for (std::uint32_t place = 0; place < shards; ++place) {
    const std::uint32_t rank = rings.members[place];
    for (std::uint32_t lane = 0; lane < lanes_before_line(rings, passes, place); ++lane) author.lane(rank);
    for (std::uint32_t number = 0; number < passes; ++number) {
      Walk walk(author, rings, number, place);
      for (const Leaf& leaf : leaves[rank]) {
        const std::uint32_t lane = author.lane(leaf.rank);
        author.add(leaf.rank, lane, stepping(send(rank, walk.chunk(walk.all().start), kInput), walk.step()), shards);
        walk.take_in(leaf.rank, lane, shards == 1 && leaf.rank == leaves[rank].back().rank);
      }
      walk.reduce_scatter();
      walk.all_gather();
      for (const Leaf& leaf : leaves[rank]) {
        walk.hand_out(leaf.rank);
        const std::uint32_t lane = author.lane(leaf.rank);
        for (const Walk::Run& run : walk.result()) {
          author.add(leaf.rank, lane, stepping(receive(rank, walk.result_lane(), walk.chunk(run.start), kOutput), walk.step()), run.count);
        }
      }
    }
  }
  return author.take();
}

Program ring_all_reduce(std::vector<std::uint32_t> order, bool both_ways) {
  const auto ranks = static_cast<std::uint32_t>(order.size());
  return ring_program("ring", {{ranks}, std::move(order), {}, both_ways ? all_passes(1) : one_pass(1)});
}

Program ring_all_reduce(std::uint32_t ranks) {
  std::vector<std::uint32_t> order(std::min(ranks, kMaxRanks + 1));
  std::iota(order.begin(), order.end(), 0U);
  if (ranks > kMaxRanks) Author("ring", Collective::all_reduce, ranks, AddOrder::rotated);  // refuses
  return ring_all_reduce(std::move(order));
}

std::uint32_t folded(std::uint32_t place, std::uint32_t size) { return place < (size + 1) / 2 ? 2 * place : 2 * (size - 1 - place) + 1; }
std::uint32_t unfolded(std::uint32_t coordinate, std::uint32_t size) { return coordinate % 2 == 0 ? coordinate / 2 : size - 1 - coordinate / 2; }

Program grid_all_reduce(const std::vector<Dimension>& dimensions, std::vector<Pass> passes, const std::vector<std::uint32_t>& ranks) {
  Rings rings;
  rings.passes = std::move(passes);
  std::uint64_t members = 1;
  for (const Dimension& dimension : dimensions) {
    members *= dimension.size;
    if (members > kMaxRanks) throw Error(Code::invalid_argument, fmt::format("more than {} members", kMaxRanks), "grid");
    rings.sizes.push_back(dimension.size);
    rings.open.push_back(!dimension.wraps);
  }
  for (std::uint32_t place = 0; place < members; ++place) rings.members.push_back(ranks.empty() ? place : ranks[place]);
  return ring_program("grid", rings);
}

Program nearest_grid_all_reduce(std::uint32_t ranks) {
  const auto [rows, columns] = nearest_factors(ranks);
  return grid_all_reduce({{rows, true}, {columns, true}}, one_pass(2));
}

std::pair<std::uint32_t, std::uint32_t> nearest_factors(std::uint32_t ranks) {
  std::uint32_t factor = 1;
  for (std::uint32_t k = 2; k * k <= ranks; ++k) {
    if (ranks % k == 0) factor = k;
  }
  return {factor, ranks / factor};
}

}  // namespace shoal::collective
