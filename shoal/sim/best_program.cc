#include "shoal/sim/best_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "shoal/collective/blink.h"
#include "shoal/collective/build.h"
#include "shoal/collective/chunk_size.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/forms.h"
#include "shoal/collective/modes.h"
#include "shoal/collective/synthesize.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "shoal/sim/price.h"

namespace shoal::sim {
namespace {

using collective::Collective;
using collective::kept_or_synthesized;
using collective::Program;
using collective::ProgramCache;
using collective::Synthesis;

constexpr double kLinkUnit = 125e6;                // bytes/s
constexpr std::uint32_t kFlowsToCompare = 1 << 16; // enough to tell programs apart

topo::Topology with_seconds(topo::Topology topology) {
  if (!topology.relative) return topology;
  for (topo::Link& link : topology.links) link.rate *= kLinkUnit;
  topology.relative = false;
  return topology;
}

struct Candidate {
  Program program;
  Offered offer;

  Program bare() const {  // without a certificate, which is of the topology as it was
    Program without = program;
    without.certificate.reset();
    return without;
  }
};

std::vector<Program> candidates(const topo::Topology& topology, Collective collective, std::uint32_t root, const ProgramCache& cache) {
  std::vector<Program> all;
  if (collective::has_bound(collective)) all.push_back(kept_or_synthesized(topology, collective, Synthesis::few, root, cache));
  const auto ranks = static_cast<std::uint32_t>(topology.hosts.size());
  if (collective == Collective::all_reduce) {
    for (Program& program : collective::programs_of_form(topology)) all.push_back(std::move(program));
  }
  if (ranks > collective::kMostExactHosts && !all.empty()) return all;
  for (const std::string& name : collective::builder_names(collective))
    all.push_back(collective::build(collective, name, ranks, root));
  return all;
}

}  // namespace

bool can_be_proved(const Program& program) {
  try {
    verify(program);
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
    return false;
  }
  return true;
}

BestProgram best_program(const topo::Topology& topology, Collective collective, std::uint32_t root, double bytes,
                         const ProgramCache& cache, const std::function<bool(const Program&)>& is_proved) {
  const topo::Topology in_seconds = with_seconds(topology);
  Costs costs;
  costs.most_flows = kFlowsToCompare;
  std::vector<Candidate> all;
  for (Program& program : candidates(topology, collective, root, cache)) {
    const double rate = topology.links.empty() ? 0 : congestion(program, in_seconds).rate;
    all.push_back({std::move(program), {}});
    all.back().offer = {all.back().program.name, rate > 0 ? bytes / rate / costs.goodput : 0};
  }
  // Every program's bound is that of the first one, which was packed.
  for (Candidate& candidate : all) {
    if (!candidate.program.certificate && all[0].program.certificate) {
      candidate.program.certificate = all[0].program.certificate;
      candidate.program.certificate->rate = congestion(candidate.program, topology).rate;
    }
  }
  std::ranges::stable_sort(all, {}, [](const Candidate& candidate) { return candidate.offer.seconds; });
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  const bool is_choice = all.size() > 1 && !topology.links.empty();
  for (std::size_t k = 0; k < all.size() && is_choice;) {
    Candidate& candidate = all[k];
    if (candidate.offer.seconds >= least) break;
    const Program bare = candidate.bare();
    candidate.offer.seconds = simulated_seconds(bare, in_seconds, bytes, costs);
    candidate.offer.simulated = true;
    if (candidate.offer.seconds < least && !is_proved(bare)) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    if (candidate.offer.seconds < least) best = k, least = candidate.offer.seconds;
    ++k;
  }
  while (!is_choice && !all.empty()) {
    if (is_proved(all[0].bare())) break;
    all.erase(all.begin());
  }
  if (all.empty())
    throw Error(Code::unsupported, "no program for it is short enough to be proved", "topology " + topology.name);
  BestProgram made{std::move(all[best].program), {}};
  for (const Candidate& candidate : all) made.offers.push_back(candidate.offer);
  std::rotate(made.offers.begin(), made.offers.begin() + static_cast<std::ptrdiff_t>(best),
              made.offers.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  std::stable_sort(made.offers.begin() + 1, made.offers.end(),
                   [](const Offered& a, const Offered& b) { return a.seconds < b.seconds; });
  return made;
}

namespace {

constexpr std::uint32_t kMostTicks = 40, kFlowsToTune = 1 << 17;

// Chunks of the size at which Blink's rule settles, a simulated run being an iteration.
void tune(Program& program, const topo::Topology& topology, double bytes) {
  Costs costs;
  costs.most_flows = kFlowsToTune;
  collective::ChunkSize size({.first = 64 << 10, .most = 8 << 20});
  for (std::uint32_t tick = 0; tick < kMostTicks && !size.settled(); ++tick) {
    program.slice_bytes = static_cast<std::uint32_t>(size.bytes());
    size.tick(bytes / simulated_seconds(program, topology, bytes, costs));
  }
  program.slice_bytes = static_cast<std::uint32_t>(size.bytes());
}

// Blink's programs for this network, with the sizes of chunks that its rule finds, and trees of ours beside them.
BestProgram best_of_blink(const topo::Topology& topology, Collective collective, std::uint32_t root, double bytes, const ProgramCache& cache) {
  const topo::Topology timed = with_seconds(topology);
  std::vector<Program> made{kept_or_synthesized(topology, collective, Synthesis::blink, root, cache)};
  if (auto hybrid = collective::blink_hybrid(topology, collective, root, bytes)) made.push_back(std::move(*hybrid));
  BestProgram best;
  for (Program& program : made) {
    if (!topology.links.empty() && bytes >= 1) tune(program, timed, bytes);
    best.offers.push_back({program.name, simulated_seconds(program, timed, bytes), true});
    if (best.offers.size() > 1 && best.offers.back().seconds >= best.offers[0].seconds) continue;
    std::swap(best.offers[0], best.offers.back());
    best.program = std::move(program);
  }
  const Program plain = kept_or_synthesized(topology, collective, Synthesis::few, root, cache);
  best.offers.push_back({plain.name, simulated_seconds(plain, timed, bytes), true});
  return best;
}

}  // namespace

BestProgram program_on(const topo::Topology& topology, Collective collective, const std::string& mode, std::uint32_t root,
                       double bytes, const ProgramCache& cache) {
  if (root != 0 && !collective::has_root(collective)) throw Error(Code::invalid_argument, fmt::format("{} has none", name(collective)), "root");
  check_bytes(bytes);
  if (mode == "auto") return best_program(topology, collective, root, bytes, cache);
  if (mode == "blink") return best_of_blink(topology, collective, root, bytes, cache);
  return {collective::program_for(topology, collective, mode, root, cache), {}};
}

}  // namespace shoal::sim
