// Programs with a logarithmic number of steps: recursive doubling, halving-doubling, swing, binomial broadcast.
//
// The first three need a power of two, P members with places 0..P-1. The N-P others are the odd ones among the first
// 2(N-P) ranks: each hands its input to the rank before it, and gets the result from there.
//
//     N = 6, P = 4, ranks  0<-1  2<-3  4  5
//                  places  0     1     2  3
//
// Every addition is a fold of two in the order of their places, so all members make the same bits.
// Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005); De Sensi et al., "Swing" (NSDI 2024).
#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "shoal/collective/author.h"
#include "shoal/collective/build.h"

namespace shoal::collective {

namespace {

constexpr std::uint32_t kFolds = 2;  // a member's third lane

struct Places {
  explicit Places(std::uint32_t ranks) : count(std::bit_floor(ranks)), extra(ranks - count) {}
  std::uint32_t count, extra;
  bool has_place(std::uint32_t rank) const { return rank >= 2 * extra || rank % 2 == 0; }
  bool has_partner(std::uint32_t rank) const { return rank < 2 * extra; }
  std::uint32_t place(std::uint32_t rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  std::uint32_t rank(std::uint32_t place) const { return place < extra ? 2 * place : place + extra; }
  std::uint32_t steps() const { return static_cast<std::uint32_t>(std::countr_zero(count)); }
};

// What a member holds of chunks first..first+count-1, and the loop over them that wrote it.
struct Piece {
  Site site = kInput;
  bool written = false;   // the input needs no wait
  Mark by;
  std::uint32_t first = 0, count = 0;
};

Op loop_after(Op op, const Piece& piece) {  // op loops over chunks op.chunk, op.chunk + 1, ... of the piece
  op = stepping(std::move(op), 1);
  if (!piece.written) return op;
  const auto shift = static_cast<std::int32_t>(op.chunk) - static_cast<std::int32_t>(piece.first);
  return after(std::move(op), piece.by, shift);
}

// Sends `count` chunks from `first` on out of `piece`.
Mark send_part(Author& author, std::uint32_t rank, std::uint32_t peer, const Piece& piece, std::uint32_t first,
               std::uint32_t count) {
  return author.add(rank, kSends, loop_after(send(peer, first, piece.site), piece), count);
}

// Receives `count` chunks from `first` on into window `slot` and adds them to `piece`: the new piece, in the output.
// `own_first`: the order of addition. `sent`: a send of the piece, which must have read it before (and waited for it).
Piece add_part(Author& author, std::uint32_t rank, std::uint32_t peer, std::uint32_t slot, const Piece& piece,
               std::uint32_t first, std::uint32_t count, bool own_first, bool last, const Mark* sent = nullptr) {
  const Op take = stepping(receive(peer, kSends, first, window(slot)), 1);
  const Mark taken = author.add(rank, kReceives, take, count);
  std::vector<Site> sources{piece.site, window(slot)};
  if (!own_first) std::swap(sources[0], sources[1]);
  Op add = after(stepping(fold(first, std::move(sources), kOutput), 1), taken);
  if (sent == nullptr) add = loop_after(std::move(add), piece);
  else if (piece.written) add = after(std::move(add), *sent);
  add.completes = last;
  return {kOutput, true, author.add(rank, kFolds, std::move(add), count), first, count};
}

// A member without a place: its input goes to the rank before it, the result comes back.
void ride_along(Author& author, std::uint32_t rank, std::uint32_t chunks) {
  author.add(rank, kSends, stepping(send(rank - 1, 0, kInput), 1), chunks);
  author.add(rank, kReceives, stepping(receive(rank - 1, kSends, 0, kOutput), 1), chunks);
}

// Whom a place meets in each step, and which chunk is a place's in the end. The chunks that a place still sums after a step are a range of a power
// of two, aligned, and half of the range before; so those of two that meet are the two halves of one.
struct Meetings {
  std::vector<std::vector<std::uint32_t>> with;  // [step][place]
  std::vector<std::uint32_t> chunk;              // [place]
};

Meetings far_first(const Places& places) {
  Meetings meetings;
  for (std::uint32_t half = places.count / 2; half > 0; half /= 2) {
    auto& with = meetings.with.emplace_back(places.count);
    for (std::uint32_t place = 0; place < places.count; ++place) with[place] = place ^ half;
  }
  for (std::uint32_t place = 0; place < places.count; ++place) meetings.chunk.push_back(place);
  return meetings;
}

// Swing: even places forward, odd ones back, by (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11, ... round the ring. Those whose chunks a place sums lie
// all over the ring, but those of two places are the same or have none in common: so numbering them as they part makes them ranges.
Meetings near_first(const Places& places) {
  Meetings meetings;
  std::int64_t power = -2;
  for (std::uint32_t step = 0; step < places.steps(); ++step, power *= -2) {
    auto& with = meetings.with.emplace_back(places.count);
    for (std::uint32_t place = 0; place < places.count; ++place) {
      const std::int64_t by = (1 - power) / 3;
      with[place] = around(place, place % 2 == 0 ? by : -by, places.count);
    }
  }
  // From the last step to the first, what two share is a range of two halves, the one with the least place first.
  meetings.chunk.assign(places.count, 0);
  std::vector<std::uint32_t> least(places.count);  // [place]: of those whose chunks it sums after the step
  std::iota(least.begin(), least.end(), 0U);
  std::uint32_t size = 1;
  for (std::size_t step = meetings.with.size(); step-- > 0; size *= 2) {
    std::vector<std::uint32_t> before = least;
    for (std::uint32_t place = 0; place < places.count; ++place) {
      const std::uint32_t other = least[meetings.with[step][place]];
      if (other < least[place]) meetings.chunk[place] += size;
      before[place] = std::min(least[place], other);
    }
    least = std::move(before);
  }
  return meetings;
}

// Halving: the range of chunks a place sums halves in each step, until it is one chunk. Doubling: ranges come together again.
// A member's whole chunks are pieces in ascending order, one for each loop that wrote some.
Program halve_and_double(const std::string& name, std::uint32_t ranks, Meetings (*meetings_of)(const Places&)) {
  if (ranks == 1) return alone(name, Collective::all_reduce, AddOrder::tree);
  Author author(name, Collective::all_reduce, ranks, AddOrder::tree);
  const Places places(ranks);
  const Meetings meetings = meetings_of(places);
  author.chunks(places.count);
  author.slots(1 + places.steps());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (int lane = 0; lane < 3; ++lane) author.lane(rank);
    if (!places.has_place(rank)) {
      ride_along(author, rank, places.count);
      continue;
    }
    const std::uint32_t place = places.place(rank), own = meetings.chunk[place];
    Piece sum{kInput, false, {}, 0, places.count};
    if (places.has_partner(rank)) sum = add_part(author, rank, rank + 1, 0, sum, 0, places.count, true, false);

    std::uint32_t slot = 1, half = places.count / 2;
    for (std::size_t step = 0; half > 0; ++step, ++slot, half /= 2) {
      const std::uint32_t other = meetings.with[step][place], peer = places.rank(other);
      const std::uint32_t keep = own & ~(half - 1), give = keep ^ half;
      send_part(author, rank, peer, sum, give, half);
      sum = add_part(author, rank, peer, slot, sum, keep, half, place < other, half == 1);
    }

    std::vector<Piece> whole{sum};
    const auto send_whole = [&](std::uint32_t peer) {
      for (const Piece& piece : whole) send_part(author, rank, peer, piece, piece.first, piece.count);
    };
    std::uint32_t size = 1;
    for (std::size_t step = meetings.with.size(); step-- > 0; size *= 2) {
      const std::uint32_t peer = places.rank(meetings.with[step][place]), first = (own & ~(size - 1)) ^ size;
      send_whole(peer);
      const Op take = stepping(receive(peer, kSends, first, kOutput), 1);
      whole.push_back({kOutput, true, author.add(rank, kReceives, take, size), first, size});
      std::sort(whole.begin(), whole.end(), [](const Piece& a, const Piece& b) { return a.first < b.first; });
    }
    if (places.has_partner(rank)) send_whole(rank + 1);
  }
  return author.take();
}

}  // namespace

Program recursive_doubling_all_reduce(std::uint32_t ranks) {
  if (ranks == 1) return alone("recursive_doubling", Collective::all_reduce, AddOrder::tree);
  Author author("recursive_doubling", Collective::all_reduce, ranks, AddOrder::tree);
  const Places places(ranks);
  author.slots(1 + places.steps());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (int lane = 0; lane < 3; ++lane) author.lane(rank);
    if (!places.has_place(rank)) {
      ride_along(author, rank, 1);
      continue;
    }
    Piece sum{kInput, false, {}, 0, 1};
    if (places.has_partner(rank)) sum = add_part(author, rank, rank + 1, 0, sum, 0, 1, true, false);
    const std::uint32_t place = places.place(rank);
    for (std::uint32_t step = 0; step < places.steps(); ++step) {
      const std::uint32_t other = place ^ (1U << step), peer = places.rank(other);
      const Mark sent = send_part(author, rank, peer, sum, 0, 1);
      sum = add_part(author, rank, peer, 1 + step, sum, 0, 1, place < other, step + 1 == places.steps(), &sent);
    }
    if (places.has_partner(rank)) send_part(author, rank, rank + 1, sum, 0, 1);
  }
  return author.take();
}

Program halving_doubling_all_reduce(std::uint32_t ranks) { return halve_and_double("halving_doubling", ranks, far_first); }
Program swing_all_reduce(std::uint32_t ranks) { return halve_and_double("swing", ranks, near_first); }

// Place v (counted from the root) hears the place with v's lowest bit cleared, then tells v + m for each smaller power m.
Program binomial_broadcast(std::uint32_t ranks, std::uint32_t root) {
  Author author("binomial", Collective::broadcast, ranks, AddOrder::none);
  author.root(root);
  for (std::uint32_t place = 0; place < ranks; ++place) {
    const std::uint32_t rank = around(root, place, ranks);
    author.lane(rank);
    author.lane(rank);
    Piece piece{kInput, false, {}, 0, 1};
    std::uint32_t step = std::bit_ceil(ranks);
    if (place == 0) {
      author.add(rank, kReceives, copy(0, kInput, kOutput));
    } else {
      step = place & -place;
      const std::uint32_t parent = around(root, place - step, ranks);
      piece = {kOutput, true, author.add(rank, kReceives, receive(parent, kSends, 0, kOutput)), 0, 1};
    }
    for (step /= 2; step > 0; step /= 2) {
      if (place + step < ranks) send_part(author, rank, around(root, place + step, ranks), piece, 0, 1);
    }
  }
  return author.take();
}

}  // namespace shoal::collective
