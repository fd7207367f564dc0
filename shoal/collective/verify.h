// Proof that a program does what its collective says: a separate, simple program that shares nothing with the
// builders or the runner (research/collective.md 4.9). It unrolls the loops, runs the lanes in lockstep (waits.h), and then looks at one chunk after
// the other: what happens before what (hazards.h), and what each site holds (sums.h), a *multiset* of contributions, so that a double count
// is seen, not absorbed.
#pragma once

#include <memory>
#include <utility>

#include "shoal/collective/program.h"

namespace shoal::collective {

// A Program that verify() has proved; the runner takes nothing else. Cheap to copy.
class Verified {
 public:
  const Program& program() const { return *program_; }
  // Whether input and output may be the same memory (all_reduce, reduce, broadcast; there `copy` does nothing then).
  bool in_place() const { return in_place_; }

 private:
  Verified(std::shared_ptr<const Program> program, bool in_place) : program_(std::move(program)), in_place_(in_place) {}
  friend Verified verify(Program program);
  std::shared_ptr<const Program> program_;
  bool in_place_;
};

// Proves: every op in range; sends match receives, first in first out in each stream; every chunk of the result is
// exactly its collective's post-condition, each contribution once, in the declared order, divided once (`completes`);
// nothing is read before it is written; two ops that touch the same site, one writing, are ordered by `after` or by bytes
// that arrived; no wait cycle even with scratch windows of two slices, lanes that finish each slice before the next, and
// a network that buffers nothing. A microsecond and 25 bytes an op; of many ops, parts are proved one by one (parts.h), and where members do the same a few stand for
// all (by_symmetry.h): a ring of 4,096 takes 0.4 s. Error{unsupported} beyond 2^26 unrolled ops of a part without symmetry, or 2^29 in all.
// Throws Error{invalid_argument}, naming rank, lane, op and iteration: a program is data, wherever it came from.
Verified verify(Program program);

}  // namespace shoal::collective
