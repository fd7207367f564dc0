#include "shoal/collective/modes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/forms.h"
#include "shoal/collective/synthesize.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

constexpr Synthesis kSyntheses[] = {Synthesis::few, Synthesis::exact, Synthesis::blink};

}  // namespace

std::vector<std::string> mode_names(Collective collective) {
  std::vector<std::string> names;
  for (const Synthesis how : kSyntheses) names.emplace_back(name(how));
  if (collective == Collective::all_reduce) names.insert(names.end(), std::begin(kForms), std::end(kForms));
  for (std::string& name : builder_names(collective)) names.push_back(std::move(name));
  return names;
}

Program program_for(const topo::Topology& topology, Collective collective, const std::string& called, std::uint32_t root, const ProgramCache& cache) {
  std::string mode = called;
  std::ranges::replace(mode, '-', '_');
  const std::vector<std::string> names = mode_names(collective);
  if (std::ranges::find(names, mode) == names.end()) {
    throw Error(Code::invalid_argument, fmt::format("there is no mode {} for {}", called, name(collective)), "mode",
                fmt::format("auto, {}", fmt::join(names, ", ")));  // auto: sim/best_program.h
  }
  for (const Synthesis how : kSyntheses) {
    if (mode == name(how)) return kept_or_synthesized(topology, collective, how, root, cache);
  }
  if (mode == "ring" && collective == Collective::all_reduce) mode = kOrderedRing;
  Program program = is_form(mode) ? build_for(topology, mode) : build(collective, mode, static_cast<std::uint32_t>(topology.hosts.size()), root);
  if (has_bound(collective)) certify(program, topology);
  return program;
}

}  // namespace shoal::collective
