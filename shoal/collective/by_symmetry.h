// The proof of a program whose members do the same (symmetry.h), by a few that stand for all. Internal to the verifier.
//
// What is proved of one chunk holds of its image, so that of each class of chunks one is looked at: a program is made of all ops on it (what waits for other chunks
// left out, which proves more), and unrolled, ordered and checked as any other. What remains concerns all chunks at once, and is proved of one rank of each class:
//   - that its sends meet receives of the same chunks in order, for which its peers are looked at as they are, and that no receive of its own is left over;
//   - that nobody waits for himself. If moments wait in a circle, then so do their classes; and if classes do, then from a moment in one of them
//     there is a way on to the next for ever, which in a program that ends leads back to where it was. So classes are ordered, not moments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "shoal/collective/program.h"

namespace shoal::collective {

// Of one part of a program (parts.h) with its chunks: what check_hazards() returns, or nothing where it has no symmetry. Throws Error{invalid_argument} where the proof
// fails, in the words of the representatives; a longer one may still do.
std::optional<bool> proved_by_symmetry(const Program& program, std::span<const std::uint32_t> chunks);

}  // namespace shoal::collective
