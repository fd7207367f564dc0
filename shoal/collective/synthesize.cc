#include "shoal/collective/synthesize.h"

#include <vector>

#include "shoal/collective/blink.h"
#include "shoal/collective/build_trees.h"

namespace shoal::collective {

namespace {

using packing::Packing;

Packing pack(const PackingTask& task, Synthesis how) {
  if (how == Synthesis::exact) task.check_searched(name(how));
  const Packing best = task.best();
  if (how == Synthesis::exact || task.ranks > kMostExactHosts) return best;  // of more, few are the best that is known
  return packing::pack_few(task.network, task.demand, task.root, &best);
}

}  // namespace

const char* name(Synthesis how) { return how == Synthesis::exact ? "exact" : how == Synthesis::blink ? kBlink : "trees"; }

Program synthesize(const topo::Topology& topology, Collective collective, Synthesis how, std::uint32_t root) {
  if (how == Synthesis::blink) return blink_program(topology, collective, root);
  const PackingTask task(topology, collective, root);
  if (task.ranks == 1) return tree_program(name(how), collective, 1, {});
  const Packing packing = pack(task, how);
  const std::vector<packing::Tree> trees =
      packing::along_routes(topology, packing, how == Synthesis::few, task.ranks <= kMostExactHosts).trees;
  Program program = tree_program(name(how), collective, task.ranks, data_trees(trees, task.ranks, rate_of(trees)), root);
  program.certificate = certificate(program, topology, packing);
  return program;
}

Program kept_or_synthesized(const topo::Topology& topology, Collective collective, Synthesis how, std::uint32_t root,
                            const ProgramCache& cache) {
  return cache.kept_or_made(topology, collective, name(how), root, [&] { return synthesize(topology, collective, how, root); });
}

}  // namespace shoal::collective
