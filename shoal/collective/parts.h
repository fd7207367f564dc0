// The parts of a program that have nothing to do with each other: passes of rings, say. Of two parts no lane speaks to the other, waits for it, shares a
// window with it, or speaks of a chunk that the other speaks of, so that each does what it does whatever the other does, and is proved alone. Internal to the verifier.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shoal/collective/unroll.h"

namespace shoal::collective {

struct ProgramPart {
  std::vector<std::uint32_t> rows;  // its lanes, among those of all ranks
  std::vector<std::uint32_t> chunks;  // ascending; those of which nobody speaks are of the first part
  std::uint32_t instances = 0;
};
// As few lanes together as can be; a program without lanes has none. O(instances), a nanosecond each.
std::vector<ProgramPart> parts_of(const LaidOut& program);
// visit(part, program with its lanes alone), one after the other; parts that have at most `enough` instances together are visited as one, for a visit looks at
// the lanes of all ranks.
void each_part(const LaidOut& program, std::uint32_t enough, const std::function<void(const ProgramPart&, const Program&)>& visit);

// The program with the lanes for which keep(rank, lane) holds; the others stay, under their numbers, empty.
Program with_lanes(const Program& program, const std::function<bool(std::uint32_t rank, std::uint32_t lane)>& keep);

// Numbers modulo another, one step after the other: chunks or peers of the iterations of an op.
class Cyclic {
 public:
  Cyclic(std::uint32_t first, std::int32_t step, std::uint32_t iteration, std::uint32_t modulus)
      : at_(reduced(std::int64_t{first} + std::int64_t{step} * iteration, modulus)),
        step_(reduced(step, modulus)),
        modulus_(modulus) {}
  static Cyclic chunks(const Program& program, const Op& op, std::uint32_t from) {
    return {op.chunk, op.chunk_step, from, program.chunks};
  }
  static Cyclic peers(const Program& program, const Op& op, std::uint32_t from) {
    return {op.peer, op.peer_step, from, program.ranks};
  }

  std::uint32_t next() {
    const std::uint32_t here = at_;
    const std::uint64_t there = std::uint64_t{at_} + step_;
    at_ = static_cast<std::uint32_t>(there >= modulus_ ? there - modulus_ : there);
    return here;
  }

 private:
  static std::uint32_t reduced(std::int64_t number, std::int64_t modulus) {
    return static_cast<std::uint32_t>((number % modulus + modulus) % modulus);
  }
  std::uint32_t at_, step_, modulus_;
};

}  // namespace shoal::collective
