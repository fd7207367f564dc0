// In which order the slices of a program can happen at all: the proof that nobody waits for himself. Internal to
// the verifier.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/collective/unroll.h"

namespace shoal::collective {

// Each chunk is cut in kSlices, each window holds kDepth of them: a lane meets full windows in the middle of a chunk.
inline constexpr std::uint32_t kSlices = 4, kDepth = 2;

// Every instance, in one order in which their first slices can be done under the strictest runner and network that are allowed: a
// slice begins when the one in front of it in its lane is done, a send is done only when its receive has begun. What a slice waits for
// stays done, so that this one run stands for all: if it comes to its end, each does. Without scratch windows whole chunks stand for their
// slices: every way from one slice to another is then one between their ops, and the other way round. Throws Error{invalid_argument} that tells a cycle, if there is one.
std::vector<std::uint32_t> order_of(const Unrolled& program);

// The same instances chunk by chunk: data of one chunk never becomes data of another, so each can be looked at alone.
class Histories {
 public:
  Histories(const Unrolled& program, std::vector<std::uint32_t> order);
  std::span<const std::uint32_t> of(std::uint32_t chunk) const {
    return std::span(instances_).subspan(first_[chunk], first_[chunk + 1] - first_[chunk]);
  }
  std::uint32_t place(std::uint32_t instance) const { return place_[instance]; }  // in its chunk's history

 private:
  std::vector<std::uint32_t> instances_, first_, place_;
};

// Whether instance `later` waits slice for slice, not for the last slice, for `earlier`.
inline bool by_slice(const Unrolled& program, std::uint32_t earlier, std::uint32_t later) {
  return program.instances[earlier].chunk == program.instances[later].chunk;
}

}  // namespace shoal::collective
