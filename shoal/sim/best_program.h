// Of all programs that a network can have, the one that takes least here, simulated: `shoal program build --mode auto`.
//
// Trees, what is made for the network's form (collective/forms.h), and, of at most kMostExactHosts hosts, the builders. Nothing
// is faster than its fullest link allows, so that they are tried in that order, and what cannot be less any more is not simulated; nor is one that has
// no rival. What is too long to be proved is left out, however quick. What is synthesized is taken from `cache` and kept there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shoal/collective/program.h"
#include "shoal/collective/program_cache.h"
#include "shoal/topo/topology.h"

namespace shoal::sim {

struct Offered {
  std::string name;
  double seconds = 0;  // by simulation, or what its fullest link takes
  bool simulated = false;
};
struct BestProgram {
  collective::Program program;  // certified where that can be
  std::vector<Offered> offers;  // of modes that choose: the first is it, behind it the others that were weighed
};

bool can_be_proved(const collective::Program& program);  // whether verify() comes to its end

// `bytes`: of the whole vector. Where rates are link units, one counts as 1 Gbit/s. Throws what synthesize() does; Error{unsupported} where nothing `is_proved`.
BestProgram best_program(const topo::Topology& topology, collective::Collective collective, std::uint32_t root, double bytes,
                         const collective::ProgramCache& cache = {},
                         const std::function<bool(const collective::Program&)>& is_proved = can_be_proved);

// The same for "auto"; for "blink" the quicker of its trees and its hybrid, with chunks tuned for so many bytes, and trees of ours beside it in the offers; for
// any other mode what collective::program_for() makes of it.
BestProgram program_on(const topo::Topology& topology, collective::Collective collective, const std::string& mode,
                       std::uint32_t root, double bytes, const collective::ProgramCache& cache = {});

}  // namespace shoal::sim
