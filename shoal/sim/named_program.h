// A program by its builder's name, and by the same name that of those who are left when members are lost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/program.h"

namespace shoal::sim {

struct NamedProgram {
  std::shared_ptr<const collective::Program> program;
  std::function<std::shared_ptr<const collective::Program>(const std::vector<std::uint32_t>& ranks)> fewer;  // Job::fewer; built once for so many
};

// Throws Error{invalid_argument} as collective::build() does; `fewer` also where the root is lost.
NamedProgram named_program(collective::Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root = 0);

}  // namespace shoal::sim
