// Vector clocks: with each moment goes, for each chain of slices that are done in order, how many are known to be done.
// A chain is a stream's sends, a stream's receives, or the local ops of a lane.
#include "shoal/collective/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shoal::collective {

namespace {

struct Known {
  std::uint32_t chain, done;  // its first `done` slices
};
using Clock = std::vector<Known>;  // by chain
using ClockPtr = std::shared_ptr<const Clock>;

ClockPtr join(const ClockPtr& a, const ClockPtr& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto both = std::make_shared<Clock>();
  both->reserve(a->size() + b->size());
  auto x = a->begin(), y = b->begin();
  while (x != a->end() || y != b->end()) {
    if (y == b->end() || (x != a->end() && x->chain < y->chain)) both->push_back(*x++);
    else if (x == a->end() || y->chain < x->chain) both->push_back(*y++);
    else {
      both->push_back({x->chain, std::max(x->done, y->done)});
      ++x, ++y;
    }
  }
  return both;
}

class Clocks {
 public:
  explicit Clocks(const Unrolled& program)
      : all_(program), chain_(size()), begun_(size() * kSlices), done_(size() * kSlices), uses_(size() * kSlices) {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Known> chains;  // (rank, lane, peer): next free
    for (std::uint32_t i = 0; i < size(); ++i) {
      const Instance& at = all_.instances[i];
      const std::uint32_t peer = all_.partner[i] == kNone ? kNone : at.peer;
      const auto next = static_cast<std::uint32_t>(chains.size());
      Known& free = chains.try_emplace({at.rank, at.lane, peer}, Known{next, 0}).first->second;
      chain_[i] = free;
      free.done += kSlices;
      for (std::uint32_t s = 0; s < kSlices; ++s) {
        for (const std::uint32_t earlier : all_.after[i]) ++uses_[waited(earlier, i, s)];
        if (at.op->kind == OpKind::send) ++uses_[index(i, s)];
      }
    }
  }

  // visit(instance, slice, clock): when it touches its sources and target, `clock` is what is known to be done by then.
  template <typename Visit>
  void walk(const std::vector<Moment>& order, Visit visit) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, ClockPtr> lanes;
    for (const auto& [i, s, done] : order) {
      const Instance& at = all_.instances[i];
      const std::uint32_t here = index(i, s);
      if (!done) {
        ClockPtr& lane = lanes[{at.rank, at.lane}];
        for (const std::uint32_t earlier : all_.after[i]) lane = join(lane, use(waited(earlier, i, s)));
        begun_[here] = lane;
        continue;
      }
      const bool sends = at.op->kind == OpKind::send, receives = !sends && all_.partner[i] != kNone;
      ClockPtr clock = begun_[here];
      if (receives) clock = join(clock, std::exchange(begun_[index(all_.partner[i], s)], nullptr));
      visit(i, s, clock ? *clock : Clock{});
      if (receives) clock = join(clock, use(index(all_.partner[i], s)));
      if (!sends) begun_[here].reset();
      if (uses_[here] > 0) {
        done_[here] = join(clock, std::make_shared<Clock>(Clock{{chain_[i].chain, chain_[i].done + s + 1}}));
      }
    }
  }

  bool is_done(std::uint32_t instance, std::uint32_t slice, const Clock& clock) const {
    const Known& wanted = chain_[instance];
    const auto found = std::lower_bound(clock.begin(), clock.end(), wanted.chain,
                                        [](const Known& known, std::uint32_t chain) { return known.chain < chain; });
    return found != clock.end() && found->chain == wanted.chain && found->done > wanted.done + slice;
  }

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(all_.instances.size()); }
  static std::uint32_t index(std::uint32_t instance, std::uint32_t slice) { return instance * kSlices + slice; }
  std::uint32_t waited(std::uint32_t earlier, std::uint32_t later, std::uint32_t slice) const {
    return index(earlier, by_slice(all_, earlier, later) ? slice : kSlices - 1);
  }
  ClockPtr use(std::uint32_t of) {  // the last user takes it away: clocks are long, and few are wanted at a time
    return --uses_[of] == 0 ? std::exchange(done_[of], nullptr) : done_[of];
  }

  const Unrolled& all_;
  std::vector<Known> chain_;              // [instance]: its chain, and how many slices of it come before
  std::vector<ClockPtr> begun_, done_;    // [instance, slice]
  std::vector<std::uint32_t> uses_;       // [instance, slice]: how often done_ will be asked for
};

struct Conflict {
  std::uint32_t earlier, later;  // instances
  const char* what;
};

// Finds accesses to input and output that nothing orders.
class Watch {
 public:
  Watch(const Unrolled& program, bool in_place) : all_(program), in_place_(in_place) {}

  std::optional<Conflict> visit(const Clocks& clocks, std::uint32_t i, std::uint32_t slice, const Clock& clock) {
    const Instance& at = all_.instances[i];
    const auto done = [&](std::uint32_t earlier) { return clocks.is_done(earlier, slice, clock); };
    if (in_place_ && at.op->kind == OpKind::copy && at.op->sources[0].buffer != Buffer::scratch &&
        at.op->target.buffer == Buffer::output) {
      return {};
    }
    for (std::size_t s = 0; s < at.op->sources.size(); ++s) {
      const Site& site = at.op->sources[s];
      if (site.buffer == Buffer::scratch) {
        if (!done(all_.writer[i][s])) return Conflict{all_.writer[i][s], i, "reads a scratch window"};
        continue;
      }
      Place& place = place_of(at, site.buffer, slice);
      if (place.written != kNone) {
        if (in_place_ && site.buffer == Buffer::input) return Conflict{place.written, i, "reads the input"};
        if (!done(place.written)) return Conflict{place.written, i, "reads the output"};
      }
    }
    if (at.op->kind != OpKind::send && at.op->target.buffer == Buffer::output) {
      Place& place = place_of(at, Buffer::output, slice);
      if (place.written != kNone && !done(place.written)) return Conflict{place.written, i, "writes the output"};
      for (const std::uint32_t reader : place.read) {
        if (!done(reader)) return Conflict{reader, i, "writes the output"};
      }
      place.written = i;
      place.read.clear();
    }
    for (const Site& site : at.op->sources) {  // after the write: an op may write what it reads
      if (site.buffer == Buffer::scratch) continue;
      Place& place = place_of(at, site.buffer, slice);
      if (place.written != i) place.read.push_back(i);
    }
    return {};
  }

 private:
  struct Place {
    std::uint32_t written = kNone;
    std::vector<std::uint32_t> read;  // since it was written
  };
  Place& place_of(const Instance& at, Buffer buffer, std::uint32_t slice) {
    const std::uint64_t where = (std::uint64_t{at.rank} * all_.program.chunks + at.chunk) * kSlices + slice;
    return places_[2 * where + (buffer == Buffer::output || in_place_ ? 1 : 0)];
  }

  const Unrolled& all_;
  bool in_place_;
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace

bool check_hazards(const Unrolled& all, const std::vector<Moment>& order) {
  const Collective collective = all.program.collective;
  bool in_place = collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::broadcast;
  Clocks clocks(all);
  Watch apart(all, false), together(all, true);
  clocks.walk(order, [&](std::uint32_t i, std::uint32_t slice, const Clock& clock) {
    if (const auto conflict = apart.visit(clocks, i, slice, clock)) {
      const Instance& later = all.instances[conflict->later];
      refuse(all.program, later, fmt::format("{} of chunk {}, but nothing makes it wait for {}", conflict->what, later.chunk,
                                             place(all.instances[conflict->earlier])));
    }
    if (in_place && together.visit(clocks, i, slice, clock)) in_place = false;
  });
  return in_place;
}

}  // namespace shoal::collective
