#include "shoal/collective/verify.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shoal/collective/by_symmetry.h"
#include "shoal/collective/hazards.h"
#include "shoal/collective/parts.h"
#include "shoal/collective/sums.h"
#include "shoal/collective/unroll.h"
#include "shoal/collective/waits.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

constexpr std::uint32_t kFew = 1U << 18;  // instances, proved in about 0.2 s as they are

// Whether input and output may be one memory.
bool proved(const Program& program, std::span<const std::uint32_t> chunks) {
  const Unrolled unrolled = unroll(program);
  const Histories histories(unrolled, order_of(unrolled));
  const bool in_place = check_hazards(unrolled, histories, chunks);
  check_sums(unrolled, histories, chunks);
  return in_place;
}

bool part_proved(const ProgramPart& part, const Program& program) {
  if (part.instances <= kFew) return proved(program, part.chunks);
  try {
    if (const auto in_place = proved_by_symmetry(program, part.chunks)) return *in_place;
  } catch (const Error& error) {
    // The long way says it as of any program, or knows more ways; where it is too long, nobody knows whether there is one.
    if (part.instances > kMaxInstances) {
      throw Error(Code::unsupported, fmt::format("more than {} ops that a few cannot stand for: {}", kMaxInstances, error.fact()), error.where());
    }
  }
  return proved(program, part.chunks);
}

}  // namespace

Verified verify(Program program) {
  auto kept = std::make_shared<const Program>(std::move(program));
  const LaidOut all = lay_out(*kept);
  bool in_place = true;
  if (all.size() > kFew) {
    each_part(all, kFew, [&](const ProgramPart& part, const Program& alone) { in_place = part_proved(part, alone) && in_place; });
  } else {
    std::vector<std::uint32_t> chunks(kept->chunks);
    std::iota(chunks.begin(), chunks.end(), 0U);
    in_place = proved(*kept, chunks);
  }
  return Verified(std::move(kept), in_place);
}

}  // namespace shoal::collective
