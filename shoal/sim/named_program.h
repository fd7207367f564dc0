// A program by its builder's name or by that of what is made for a network, and by the same name that of those who are left when members are lost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/topo/topology.h"

namespace shoal::sim {

struct NamedProgram {
  std::shared_ptr<const collective::Program> program;
  std::function<std::shared_ptr<const collective::Program>(const std::vector<std::uint32_t>& ranks)> fewer;  // Job::fewer; made once for the same
};

// Throws Error{invalid_argument} as collective::build() does; `fewer` also where the root is lost.
NamedProgram named_program(collective::Collective collective, const std::string& name, std::uint32_t ranks, std::uint32_t root = 0);

// Trees or that of a form (collective/forms.h) for the part of a network that these hosts are, host k being rank k; for fewer of them the same where what is left
// has that form, else trees. Throws Error{invalid_argument} as collective::program_for() does.
NamedProgram program_of_network(collective::Collective collective, const std::string& name, const topo::Topology& topology,
                                const std::vector<topo::Node>& hosts, std::uint32_t root = 0);

}  // namespace shoal::sim
