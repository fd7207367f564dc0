// Symmetries of a program: members that do the same, each about chunks and with peers of its own, as in rings. Internal to the verifier.
//
// A symmetry takes ranks to ranks and chunks to chunks, each one to one, such that lane by lane and iteration by iteration
//
//     rank r:      op about chunk c with peer p, after an iteration of an own lane
//     its image:   the same op about the image of c with the image of p, after that iteration of its lane of the same number
//
// and that the promise of the collective for the images is what it is for r and c. Then whatever is known of rank and chunk is known of their images: who
// receives what is sent, what happens before what, what is added in which order. Nothing is believed of who wrote the program: a symmetry is
// found from the image of one rank alone, by following peers, and every op of every rank has been compared with its image's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shoal/collective/unroll.h"

namespace shoal::collective {

struct Symmetry {
  std::vector<std::uint32_t> ranks, chunks;  // images; a chunk of which nobody speaks, and a rank without ops: its own
};
// The one that takes `from` to `to`, if there is one; none of programs but of all_reduce, with scratch windows, servers, chunks that pass switches, or a left fold.
// O(instances), a nanosecond each.
std::optional<Symmetry> symmetry(const LaidOut& program, std::uint32_t from, std::uint32_t to);

// Ranks and chunks that symmetries take to each other, each class by its lowest number.
struct Orbits {
  std::vector<std::uint32_t> ranks, chunks;  // [rank], [chunk]: who stands for it
  bool are_classes = false;  // some stand for others
};
// By the symmetries that take a rank with ops to one that it speaks to: of the lowest such rank, to the first few of its peers.
Orbits orbits_of(const LaidOut& program);

}  // namespace shoal::collective
