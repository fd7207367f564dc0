#include "shoal/collective/symmetry.h"

#include <algorithm>

#include "shoal/collective/classes.h"
#include "shoal/collective/parts.h"

namespace shoal::collective {

namespace {

constexpr std::size_t kMostTried = 8;  // peers

// A lane's instances from one on that follow each other in one op: of a loop of one op the rest of it, else one.
struct Stretch {
  const Iterated* op = nullptr;
  std::uint32_t iteration = 0, count = 0;
};
class LaneWalk {
 public:
  LaneWalk(const LaidOut& all, std::uint32_t row) : ops_(all.of_row(row)) { settle(); }
  bool at_end() const { return loop_ == ops_.size(); }
  Stretch stretch() const {
    const Iterated& at = ops_[loop_ + op_];
    return {&at, iteration_, at.stride == 1 ? at.times - iteration_ : 1};
  }
  void advance(std::uint32_t count) {  // within the stretch
    const Iterated& at = ops_[loop_];
    if (at.stride == 1) {
      iteration_ += count;
    } else if (++op_ == at.stride) {
      op_ = 0;
      ++iteration_;
    }
    settle();
  }

 private:
  void settle() {  // over loops that are done
    while (loop_ < ops_.size() && iteration_ == ops_[loop_].times) {
      loop_ += ops_[loop_].stride;
      iteration_ = 0;
    }
  }
  std::span<const Iterated> ops_;
  std::size_t loop_ = 0, op_ = 0;  // the loop's first op; which of it
  std::uint32_t iteration_ = 0;
};

// One to one, as far as it is known.
class Images {
 public:
  explicit Images(std::uint32_t count) : of_(count, kNone), from_(count, kNone) {}
  bool set(std::uint32_t from, std::uint32_t to) {
    if (of_[from] == to) return true;
    if (of_[from] != kNone || from_[to] != kNone) return false;
    of_[from] = to;
    from_[to] = from;
    return true;
  }
  std::uint32_t operator[](std::uint32_t from) const { return of_[from]; }
  bool fill() {  // the others with themselves
    for (std::uint32_t k = 0; k < of_.size(); ++k) {
      if (of_[k] == kNone && !set(k, k)) return false;
    }
    return true;
  }
  std::vector<std::uint32_t> take() { return std::move(of_); }

 private:
  std::vector<std::uint32_t> of_, from_;
};

class Search {
 public:
  explicit Search(const LaidOut& all) : all_(all), program_(all.program), ranks_(program_.ranks), chunks_(program_.chunks) {}

  std::optional<Symmetry> run(std::uint32_t from, std::uint32_t to) {
    if (!reach(from, to)) return {};
    for (std::size_t k = 0; k < reached_.size(); ++k) {
      if (!are_alike(reached_[k])) return {};
    }
    for (std::uint32_t rank = 0; rank < program_.ranks; ++rank) {
      if (ranks_[rank] == kNone && has_instances(rank)) return {};
    }
    if (!ranks_.fill() || !chunks_.fill() || !keeps_the_promise()) return {};
    return Symmetry{ranks_.take(), chunks_.take()};
  }

 private:
  bool has_instances(std::uint32_t rank) const {
    const std::uint32_t row = all_.first_row[rank], after = row + static_cast<std::uint32_t>(program_.lanes[rank].size());
    return all_.row_begin[row] < all_.row_begin[after];
  }

  bool reach(std::uint32_t from, std::uint32_t to) {
    const bool is_new = ranks_[from] == kNone;
    if (!ranks_.set(from, to)) return false;
    if (is_new) reached_.push_back(from);
    return true;
  }

  bool are_alike(std::uint32_t rank) {
    const std::uint32_t image = ranks_[rank];
    const std::size_t lanes = program_.lanes[rank].size(), others = program_.lanes[image].size();
    for (std::uint32_t lane = 0; lane < std::max(lanes, others); ++lane) {
      if (lane >= lanes || lane >= others) {  // who has no such lane does as little as who has nothing in it
        const std::uint32_t row = all_.first_row[lane < lanes ? rank : image] + lane;
        if (all_.row_begin[row] < all_.row_begin[row + 1]) return false;
        continue;
      }
      LaneWalk one(all_, all_.first_row[rank] + lane), other(all_, all_.first_row[image] + lane);
      while (!one.at_end() && !other.at_end()) {
        const Stretch a = one.stretch(), b = other.stretch();
        const std::uint32_t count = std::min(a.count, b.count);
        if (!are_alike(a, b, count)) return false;
        one.advance(count);
        other.advance(count);
      }
      if (!one.at_end() || !other.at_end()) return false;
    }
    return true;
  }

  bool are_alike(const Stretch& a, const Stretch& b, std::uint32_t count) {
    const Op &x = *a.op->op, &y = *b.op->op;
    const bool same = x.kind == y.kind && x.completes == y.completes && x.sources == y.sources && x.target == y.target &&
                      x.after.size() == y.after.size() && (!receives(x) || x.peer_lane == y.peer_lane);
    if (!same) return false;
    if (transfers(x)) {
      Cyclic from = Cyclic::peers(program_, x, a.iteration), to = Cyclic::peers(program_, y, b.iteration);
      for (std::uint32_t i = 0; i < (x.peer_step == 0 && y.peer_step == 0 ? 1 : count); ++i) {
        if (!reach(from.next(), to.next())) return false;
      }
    }
    Cyclic from = Cyclic::chunks(program_, x, a.iteration), to = Cyclic::chunks(program_, y, b.iteration);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!chunks_.set(from.next(), to.next())) return false;
    }
    for (std::size_t k = 0; k < x.after.size(); ++k) {
      if (!wait_alike(a, b, count, x.after[k], y.after[k])) return false;
    }
    return true;
  }

  // Whether iterations wait for instances at equal places of lanes with equal numbers.
  bool wait_alike(const Stretch& a, const Stretch& b, std::uint32_t count, const After& x, const After& y) const {
    const Iterated *const one = all_.waited(a.op->rank, x), *const other = all_.waited(b.op->rank, y);
    if (one == nullptr || other == nullptr || x.lane != y.lane) return false;
    const auto place = [this](const Iterated& waited, std::uint32_t iteration, const After& wait) {
      const std::uint32_t instance = LaidOut::instance_of(waited, iteration, wait);
      return instance == kNone ? kNone : instance - all_.row_begin[waited.row];
    };
    const auto alike = [&](std::uint32_t i) { return place(*one, a.iteration + i, x) == place(*other, b.iteration + i, y); };
    const auto inside = [&](std::uint32_t i) {
      return place(*one, a.iteration + i, x) != kNone && place(*other, b.iteration + i, y) != kNone;
    };
    // Between two that are inside their loops places go on evenly: equal at both ends they are equal.
    if (inside(0) && inside(count - 1)) return alike(0) && alike(count - 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!alike(i)) return false;
    }
    return true;
  }

  // What sums ask of images as of what they are images of: empty chunks, and where addition goes by ranks, order and owner. Every rank has input and output of every chunk.
  bool keeps_the_promise() const {
    if (program_.collective != Collective::all_reduce || program_.order == AddOrder::left_fold) return false;
    if (program_.slots > 0 || program_.servers > 0 || !program_.by_switches.empty()) return false;
    for (std::uint32_t rank = 0; program_.order == AddOrder::rotated && rank < program_.ranks;
         ++rank) {  // "the next rank" is the image's next
      if ((ranks_[rank] + program_.ranks - rank) % program_.ranks != ranks_[0]) return false;
    }
    for (std::uint32_t chunk = 0; chunk < program_.chunks; ++chunk) {
      const std::uint32_t image = chunks_[chunk];
      if (is_empty(program_, chunk) != is_empty(program_, image)) return false;
      if (program_.order == AddOrder::rotated && ranks_[owner(program_, chunk)] != owner(program_, image)) return false;
    }
    return true;
  }

  const LaidOut& all_;
  const Program& program_;
  Images ranks_, chunks_;
  std::vector<std::uint32_t> reached_;  // ranks with an image
};

void join_images(Classes& classes, const std::vector<std::uint32_t>& images) {
  for (std::uint32_t k = 0; k < images.size(); ++k) classes.join(k, images[k]);
}

// Whom the lanes of a rank speak to, each once, as they come.
std::vector<std::uint32_t> first_peers(const LaidOut& all, std::uint32_t rank) {
  std::vector<std::uint32_t> peers;
  for (std::uint32_t row = all.first_row[rank]; row < all.first_row[rank] + all.program.lanes[rank].size(); ++row) {
    for (const Iterated& at : all.of_row(row)) {
      Cyclic next = Cyclic::peers(all.program, *at.op, 0);
      for (std::uint32_t i = 0;
           transfers(*at.op) && i < (at.op->peer_step == 0 ? std::min(at.times, 1U) : at.times) && peers.size() < kMostTried;
           ++i) {
        const std::uint32_t peer = next.next();
        if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
      }
    }
  }
  return peers;
}

}  // namespace

std::optional<Symmetry> symmetry(const LaidOut& program, std::uint32_t from, std::uint32_t to) {
  return Search(program).run(from, to);
}

Orbits orbits_of(const LaidOut& all) {
  Classes ranks(all.program.ranks), chunks(all.program.chunks);
  Orbits orbits;
  if (all.size() > 0) {
    const std::uint32_t first = std::ranges::find_if(all.ops, [](const Iterated& at) { return at.times > 0; })->rank;
    for (const std::uint32_t peer : first_peers(all, first)) {
      if (ranks.find(peer) == first) continue;
      const auto found = symmetry(all, first, peer);
      if (!found) continue;
      orbits.are_classes = true;
      join_images(ranks, found->ranks);
      join_images(chunks, found->chunks);
    }
  }
  orbits.ranks = ranks.take();
  orbits.chunks = chunks.take();
  return orbits;
}

}  // namespace shoal::collective
