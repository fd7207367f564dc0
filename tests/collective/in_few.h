// The proof by a few that stand for all (by_symmetry.h), also of programs so small that verify() does not take that way.
#pragma once

#include "shoal/collective/by_symmetry.h"
#include "shoal/collective/parts.h"
#include "shoal/core/error.h"

namespace shoal::collective {

// Every part by its symmetry: false where one has none, or is refused.
inline bool is_proved_in_few(const Program& program) {
  bool proved = true;
  try {
    each_part(lay_out(program), 0, [&](const ProgramPart& part, const Program& alone) {
      proved = proved_by_symmetry(alone, part.chunks).has_value() && proved;
    });
  } catch (const Error&) {
    return false;
  }
  return proved;
}

}  // namespace shoal::collective
