// Whether any two slices that touch the same place, one of them writing, are ordered whatever the timing. Internal to
// the verifier.
#pragma once

#include <cstdint>
#include <span>

#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"

namespace shoal::collective {

// Here the runner is the loosest that is allowed: slices of a lane overlap, sends are buffered, windows are deep; order
// comes from `after` and from bytes having arrived.
// Of these chunks, throws Error{invalid_argument} that names the second op and whom it should wait for. Returns whether the program is
// also right where each chunk's output is the same memory as its input (a copy between them does nothing then).
bool check_hazards(const Unrolled& program, const Histories& histories, std::span<const std::uint32_t> chunks);

}  // namespace shoal::collective
