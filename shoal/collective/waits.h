// In which order the slices of a program can happen at all: the proof that nobody waits for himself. Internal to
// the verifier.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/collective/unroll.h"

namespace shoal::collective {

// Each chunk is cut in kSlices, each window holds kDepth of them: a lane meets full windows in the middle of a chunk.
inline constexpr std::uint32_t kSlices = 4, kDepth = 2;

// One slice of an instance begins, and later it is done.
struct Moment {
  std::uint32_t instance = 0, slice = 0;
  bool done = false;
};

// Every moment, each after all it must wait for, under the strictest runner and network that are allowed: a slice
// begins when the one in front of it in its lane is done, a send is done only when its receive has begun.
// Throws Error{invalid_argument} that tells a cycle, if there is one.
std::vector<Moment> order_of(const Unrolled& program);

// Whether instance `later` waits slice for slice, not for the last slice, for `earlier`.
bool by_slice(const Unrolled& program, std::uint32_t earlier, std::uint32_t later);

}  // namespace shoal::collective
