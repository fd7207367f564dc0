// Proof that a program does what its collective says: a separate, simple program that shares nothing with the
// builders or the runner (research/collective.md 4.9). It unrolls the loops and runs them symbolically, each
// chunk of each site a *multiset* of contributions, so that a double count is seen, not absorbed.
#pragma once

#include <memory>

#include "shoal/collective/program.h"

namespace shoal::collective {

// A Program that verify() has proved; the runner takes nothing else. Cheap to copy.
class Verified {
 public:
  const Program& program() const { return *program_; }

 private:
  explicit Verified(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  friend Verified verify(Program program);
  std::shared_ptr<const Program> program_;
};

// Proves: every op in range; sends match receives, first in first out per (from, to, lane pair); every chunk of the
// result is exactly its collective's post-condition, each contribution once, divided once (`completes`); nothing
// is read before it is written; two ops that touch the same site, one writing, are ordered; no wait cycle even
// with scratch windows of two slices. O(unrolled ops).
// Throws Error{internal}, for a program from outside Error{invalid_argument}, naming rank, lane, op and iteration.
Verified verify(Program program);

}  // namespace shoal::collective
