// What every chunk holds, as a multiset of contributions: each added once, in the declared order, and the result
// where the collective promises it. Internal to the verifier.
#pragma once

#include <cstdint>
#include <span>

#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"

namespace shoal::collective {

// Runs the program on symbols, one of these chunks after the other, in an order that check_hazards() has found to be as good as any other.
// Throws Error{invalid_argument} that names the op, or the rank and chunk, and the contribution.
void check_sums(const Unrolled& program, const Histories& histories, std::span<const std::uint32_t> chunks);

}  // namespace shoal::collective
