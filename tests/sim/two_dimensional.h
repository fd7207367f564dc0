// 2-D sums on grids as programs: reduce-scatter along one axis, reduce-scatter and all-gather of what is left along the other,
// all-gather along the first (Ying et al., arXiv 1811.06992; Kumar et al., arXiv 2011.03641 where the second axis is a line). Each step
// waits for the whole step before it, as closed forms have it.
#pragma once

#include <vector>

#include "shoal/collective/author.h"

namespace shoal::sim {

struct Axis {
  std::uint32_t size, stride;  // members; from one to the next in rank
};

class TwoDimensional {
 public:
  // `parts` sums of equal size, each with 2 x outer x inner chunks, over ranks that fill both axes.
  TwoDimensional(std::uint32_t ranks, std::uint32_t parts) : author_("grid", collective::Collective::all_reduce, ranks, collective::AddOrder::tree), ranks_(ranks) {
    author_.chunks(parts * 2 * ranks);
  }
  collective::Program take() { return author_.take(); }

  // One more sum: around the outer axis in both directions with half of its chunks each; inside on a ring, too, or on a line.
  void add(Axis outer, Axis inner, bool line) {
    // Peers name lanes of each other: every rank has the same ones.
    std::vector<Lanes> lanes(ranks_);
    for (const std::uint32_t direction : {0U, 1U}) {
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        for (std::uint32_t* lane : {&lanes[rank].out, &lanes[rank].in, &lanes[rank].right, &lanes[rank].from_left, &lanes[rank].left, &lanes[rank].from_right}) {
          *lane = author_.lane(rank);
        }
      }
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) write(rank, lanes[rank], outer, inner, line, direction);
      first_chunk_ += ranks_;
    }
  }

 private:
  using Mark = collective::Mark;
  struct Awaited {
    Mark mark;
    std::int32_t shift;
  };
  struct Lanes {
    std::uint32_t out, in, right, from_left, left, from_right;
  };

  std::uint32_t chunk(Axis inner, std::uint32_t part, std::uint32_t piece) const { return first_chunk_ + part * inner.size + piece; }
  static std::uint32_t place(Axis axis, std::uint32_t rank) { return rank / axis.stride % axis.size; }
  static std::uint32_t moved(Axis axis, std::uint32_t rank, std::int64_t by) {
    const std::uint32_t at = place(axis, rank);
    return rank - at * axis.stride + collective::around(at, by, axis.size) * axis.stride;
  }

  void write(std::uint32_t rank, const Lanes& lanes, Axis outer, Axis inner, bool line, std::uint32_t direction) {
    using namespace collective;
    const std::int64_t on = direction == 0 ? 1 : -1;
    const std::uint32_t next = moved(outer, rank, on), before = moved(outer, rank, -on), mine = place(outer, rank);
    const auto last = static_cast<std::int32_t>(inner.size) - 1;
    // Around: each step moves the pieces of one part.
    Mark step;
    for (std::uint32_t s = 0; s + 1 < outer.size; ++s) {
      const std::uint32_t sent = around(mine, -on * (1 + std::int64_t{s}), outer.size), taken = around(mine, -on * (2 + std::int64_t{s}), outer.size);
      Op op = stepping(send(next, chunk(inner, sent, 0), s == 0 ? kInput : kOutput), 1);
      if (s > 0) op = after(op, step, last);
      author_.add(rank, lanes.out, op, inner.size);
      step = author_.add(rank, lanes.in, stepping(receive_reduce(before, lanes.out, chunk(inner, taken, 0), kInput, kOutput), 1), inner.size);
    }
    const std::vector<Awaited> gathered = line ? along_line(rank, lanes, inner, mine, step) : around_inside(rank, lanes, inner, mine, step, on);
    for (std::uint32_t s = 0; s + 1 < outer.size; ++s) {
      const std::uint32_t sent = around(mine, -on * std::int64_t{s}, outer.size), taken = around(mine, -on * (1 + std::int64_t{s}), outer.size);
      Op op = stepping(send(next, chunk(inner, sent, 0), kOutput), 1);
      if (s > 0) op = after(op, step, last);
      if (s == 0) for (const Awaited& awaited : gathered) op = after(op, awaited.mark, awaited.shift);
      author_.add(rank, lanes.out, op, inner.size);
      step = author_.add(rank, lanes.in, stepping(receive(before, lanes.out, chunk(inner, taken, 0), kOutput), 1), inner.size);
    }
  }

  // Sums this part's pieces around the inner ring and gathers them; returns what is done last.
  std::vector<Awaited> around_inside(std::uint32_t rank, const Lanes& lanes, Axis inner, std::uint32_t part, Mark before_all, std::int64_t on) {
    using namespace collective;
    const std::uint32_t next = moved(inner, rank, on), before = moved(inner, rank, -on), mine = place(inner, rank);
    const auto last = static_cast<std::int32_t>(inner.size) - 1;
    const auto piece = [&](std::int64_t by) { return chunk(inner, part, around(mine, on * by, inner.size)); };
    Mark step = before_all;
    for (std::int64_t s = 0; s < last; ++s) {
      author_.add(rank, lanes.right, after(send(next, piece(-1 - s), kOutput), step, s == 0 ? last : 0));
      Op add = after(receive_reduce(before, lanes.right, piece(-2 - s), kOutput, kOutput), before_all, last);
      step = author_.add(rank, lanes.from_left, s + 1 == last ? completing(add) : add);
    }
    for (std::int64_t s = 0; s < last; ++s) {
      author_.add(rank, lanes.right, after(send(next, piece(-s), kOutput), step));
      step = author_.add(rank, lanes.from_left, receive(before, lanes.right, piece(-1 - s), kOutput));
    }
    return {{step, 0}};
  }

  // The same on a line: pieces come to their owners from both ends, the farthest first, and go out again.
  std::vector<Awaited> along_line(std::uint32_t rank, const Lanes& lanes, Axis inner, std::uint32_t part, Mark before_all) {
    using namespace collective;
    const std::uint32_t mine = place(inner, rank), size = inner.size;
    const auto last = static_cast<std::int32_t>(size) - 1;
    const auto piece = [&](std::uint32_t of) { return chunk(inner, part, of); };
    const std::uint32_t left = rank - inner.stride, right = rank + inner.stride;  // where there is one
    const auto waiting = [&](Op op) { return after(op, before_all, last); };
    Mark from_left{}, from_right{}, own{};
    // To the right: pieces size - 1 ... mine + 1; from the left also mine. To the left: 0 ... mine - 1; from the right also mine.
    if (mine > 0) {
      from_left = author_.add(rank, lanes.from_left, stepping(waiting(receive_reduce(left, lanes.right, piece(size - 1), kOutput, kOutput)), -1), size - 1 - mine);
      const Op add = waiting(receive_reduce(left, lanes.right, piece(mine), kOutput, kOutput));
      own = author_.add(rank, lanes.from_left, mine + 1 == size ? completing(add) : add);
    }
    if (mine + 1 < size) {
      from_right = author_.add(rank, lanes.from_right, stepping(waiting(receive_reduce(right, lanes.left, piece(0), kOutput, kOutput)), 1), mine);
      Op add = completing(waiting(receive_reduce(right, lanes.left, piece(mine), kOutput, kOutput)));
      if (mine > 0) add = after(add, own);
      own = author_.add(rank, lanes.from_right, add);
    }
    if (mine + 1 < size) {
      const Op pass = stepping(send(right, piece(size - 1), kOutput), -1);
      author_.add(rank, lanes.right, mine > 0 ? after(pass, from_left) : waiting(pass), size - 1 - mine);
    }
    if (mine > 0) {
      const Op pass = stepping(send(left, piece(0), kOutput), 1);
      author_.add(rank, lanes.left, mine + 1 < size ? after(pass, from_right) : waiting(pass), mine);
    }
    // Out again: the own piece first, then what comes from behind.
    Mark arrived_left = own, arrived_right = own;
    if (mine > 0) arrived_left = author_.add(rank, lanes.from_left, stepping(receive(left, lanes.right, piece(mine - 1), kOutput), -1), mine);
    if (mine + 1 < size) arrived_right = author_.add(rank, lanes.from_right, stepping(receive(right, lanes.left, piece(mine + 1), kOutput), 1), size - 1 - mine);
    if (mine + 1 < size) {
      author_.add(rank, lanes.right, after(send(right, piece(mine), kOutput), own));
      if (mine > 0) author_.add(rank, lanes.right, stepping(after(send(right, piece(mine - 1), kOutput), arrived_left), -1), mine);
    }
    if (mine > 0) {
      author_.add(rank, lanes.left, after(send(left, piece(mine), kOutput), own));
      if (mine + 1 < size) author_.add(rank, lanes.left, stepping(after(send(left, piece(mine + 1), kOutput), arrived_right), 1), size - 1 - mine);
    }
    std::vector<Awaited> both;  // the last piece from either side
    if (mine > 0) both.push_back({arrived_left, static_cast<std::int32_t>(mine) - 1});
    if (mine + 1 < size) both.push_back({arrived_right, static_cast<std::int32_t>(size - 2 - mine)});
    return both;
  }

  collective::Author author_;
  std::uint32_t ranks_, first_chunk_ = 0;
};

// Rank y * width + x. On a torus half of the data goes rows first, half columns first; on a machine whose rows do not close, columns first.
inline collective::Program torus_sum(std::uint32_t width, std::uint32_t height) {
  TwoDimensional sum(width * height, 2);
  sum.add({width, 1}, {height, width}, false);
  sum.add({height, width}, {width, 1}, false);
  return sum.take();
}
inline collective::Program multipod_sum(std::uint32_t width, std::uint32_t height) {
  TwoDimensional sum(width * height, 1);
  sum.add({height, width}, {width, 1}, true);
  return sum.take();
}

}  // namespace shoal::sim
