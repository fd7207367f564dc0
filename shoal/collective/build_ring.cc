// Programs in which every member talks to its neighbours alone: half a ring, and the line (chain). All-reduce by a ring: build_rings.h.
//
// Ring, chunk c, four members: the sum begins after the owner and ends with it.
//
//     c+1 --g[c+1]--> c+2 --+g[c+2]--> c+3 --+g[c+3]--> c
//
// Patarasuk and Yuan, JPDC 69 (2009).
#include "shoal/collective/author.h"
#include "shoal/collective/build.h"

namespace shoal::collective {

namespace {


}  // namespace

// The output has no room for partial sums, so they pass through scratch windows; the chunk that has s members behind it
// has lane s and window s-1 of its own, or the ring would dead-lock: all windows full, all lanes still at their first chunk.
Program ring_reduce_scatter(std::uint32_t ranks) {
  if (ranks == 1) return alone("ring", Collective::reduce_scatter, AddOrder::rotated);
  check_pair_ranks("ring", ranks);
  Author author("ring", Collective::reduce_scatter, ranks, AddOrder::rotated);
  author.chunks(ranks);
  author.slots(ranks - 2);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t next = around(rank, 1, ranks), previous = around(rank, -1, ranks);
    for (std::uint32_t s = 0; s + 1 < ranks; ++s) author.lane(rank);  // lane s sends the sum of s+1 members
    author.add(rank, 0, send(next, around(rank, -1, ranks), kInput));
    for (std::uint32_t s = 1; s < ranks; ++s) {                       // and one lane receives the sum of s members
      const std::uint32_t chunk = around(rank, -1 - std::int64_t{s}, ranks), lane = author.lane(rank);
      if (s + 1 == ranks) {
        author.add(rank, lane, completing(receive_reduce(previous, s - 1, chunk, kInput, kOutput)));
      } else {
        const Mark sum = author.add(rank, lane, receive_reduce(previous, s - 1, chunk, kInput, window(s - 1)));
        author.add(rank, s, after(send(next, chunk, window(s - 1)), sum));
      }
    }
  }
  return author.take();
}

Program ring_all_gather(std::uint32_t ranks) {
  Author author("ring", Collective::all_gather, ranks, AddOrder::none);
  author.chunks(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t next = around(rank, 1, ranks), previous = around(rank, -1, ranks);
    author.lane(rank);
    author.lane(rank);
    if (ranks > 1) {
      const Op take = stepping(receive(previous, kSends, previous, kOutput), -1);
      const Mark result = author.add(rank, kReceives, take, ranks - 1);
      author.add(rank, kSends, send(next, rank, kInput));
      author.add(rank, kSends, stepping(after(send(next, previous, kOutput), result), -1), ranks - 2);
    }
    author.add(rank, author.lane(rank), copy(rank, kInput, kOutput));
  }
  return author.take();
}

// One chunk runs up the line 0..N-1, each member adding its own, and back down, both at once in slices.
Program chain_all_reduce(std::uint32_t ranks) {
  if (ranks == 1) return alone("chain", Collective::all_reduce, AddOrder::left_fold);
  constexpr std::uint32_t kUp = 0, kDown = 1, kAdd = 2, kResult = 3;
  Author author("chain", Collective::all_reduce, ranks, AddOrder::left_fold);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const bool first = rank == 0, last = rank + 1 == ranks;
    for (std::uint32_t lane = kUp; lane <= kResult; ++lane) author.lane(rank);
    if (first) {
      author.add(rank, kUp, send(rank + 1, 0, kInput));
    } else {
      Op add = receive_reduce(rank - 1, kUp, 0, kInput, kOutput);
      add.completes = last;
      const Mark sum = author.add(rank, kAdd, std::move(add));
      if (last) {
        author.add(rank, kDown, after(send(rank - 1, 0, kOutput), sum));
      } else {
        author.add(rank, kUp, after(send(rank + 1, 0, kOutput), sum));
      }
    }
    if (!last) {
      const Mark result = author.add(rank, kResult, receive(rank + 1, kDown, 0, kOutput));
      if (!first) author.add(rank, kDown, after(send(rank - 1, 0, kOutput), result));
    }
  }
  return author.take();
}

Program chain_broadcast(std::uint32_t ranks, std::uint32_t root) {
  Author author("chain", Collective::broadcast, ranks, AddOrder::none);
  author.root(root);
  for (std::uint32_t place = 0; place < ranks; ++place) {
    const std::uint32_t rank = around(root, place, ranks), next = around(rank, 1, ranks);
    author.lane(rank);
    author.lane(rank);
    const bool last = place + 1 == ranks;
    if (place == 0) {
      if (!last) author.add(rank, kSends, send(next, 0, kInput));
      author.add(rank, kReceives, copy(0, kInput, kOutput));
    } else {
      const Mark taken = author.add(rank, kReceives, receive(around(rank, -1, ranks), kSends, 0, kOutput));
      if (!last) author.add(rank, kSends, after(send(next, 0, kOutput), taken));
    }
  }
  return author.take();
}

// The sum begins after the root and ends with it; members between keep a window of it, having no output.
Program chain_reduce(std::uint32_t ranks, std::uint32_t root) {
  if (ranks == 1) return alone("chain", Collective::reduce, AddOrder::rotated);
  Author author("chain", Collective::reduce, ranks, AddOrder::rotated);
  author.root(root);
  author.slots(1);
  for (std::uint32_t place = 1; place <= ranks; ++place) {
    const std::uint32_t rank = around(root, place, ranks), next = around(rank, 1, ranks), previous = around(rank, -1, ranks);
    author.lane(rank);
    author.lane(rank);
    if (place == 1) {
      author.add(rank, kSends, send(next, 0, kInput));
    } else if (place < ranks) {
      const Mark sum = author.add(rank, kReceives, receive_reduce(previous, kSends, 0, kInput, window(0)));
      author.add(rank, kSends, after(send(next, 0, window(0)), sum));
    } else {
      author.add(rank, kReceives, completing(receive_reduce(previous, kSends, 0, kInput, kOutput)));
    }
  }
  return author.take();
}

}  // namespace shoal::collective
