#include "shoal/collective/synthesize.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "shoal/collective/build_trees.h"
#include "shoal/collective/congestion.h"
#include "shoal/collective/servers.h"
#include "shoal/core/error.h"
#include "shoal/packing/blink.h"
#include "shoal/packing/channels.h"

namespace shoal::collective {

namespace {

using packing::Demand;
using packing::Network;
using packing::Packing;

constexpr std::uint32_t kShares = 1U << 20;  // of the data: a chunk's share is one in a million at least

DataTree data_tree(const packing::Tree& packed, std::uint32_t ranks, double all) {
  DataTree tree = tree_of(packed, ranks);
  tree.share = std::max(1U, static_cast<std::uint32_t>(std::lround(packed.rate / all * kShares)));
  return tree;
}

Packing pack(const Network& network, Demand demand, Synthesis how, std::uint32_t root) {
  const bool small = network.hosts() <= kMostExactHosts;
  if (how != Synthesis::few && !small) {
    throw Error(Code::unsupported, fmt::format("a network of {} hosts; at most {} are searched", network.hosts(), kMostExactHosts),
                name(how), "take few: it proves a bound, too");
  }
  if (how == Synthesis::blink) return packing::pack_blink(network, demand, root);
  if (!small) return packing::pack_few(network, demand, root);
  const Packing exact = packing::pack_exactly(network, demand, root);
  return how == Synthesis::exact ? exact : packing::pack_few(network, demand, root, &exact);
}

// Whose bound is the best that can be had.
Synthesis best_known(const Network& network) { return network.hosts() <= kMostExactHosts ? Synthesis::exact : Synthesis::few; }

Demand checked_demand(Collective collective) {
  if (const std::optional<Demand> demand = demand_of(collective)) return *demand;
  throw Error(Code::unsupported, fmt::format("no trees are packed for {}", name(collective)), "synthesize",
              "all_reduce, broadcast, reduce, all_gather or reduce_scatter");
}

std::uint32_t checked_ranks(const Network& network, const topo::Topology& topology, std::uint32_t root) {
  const std::uint32_t ranks = network.hosts();
  if (ranks > kMaxRanks) throw Error(Code::unsupported, fmt::format("{} hosts; a program has at most {}", ranks, kMaxRanks), topology.name);
  if (root >= ranks) throw Error(Code::invalid_argument, fmt::format("root {} of {} hosts", root, ranks), topology.name);
  return ranks;
}

bool leads_everywhere(const topo::Topology& topology) {
  try {
    const Network network(topology);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) throw;
    return false;
  }
}

Certificate certificate(const Program& program, const topo::Topology& topology, const Packing& packing) {
  return {topo::digest(topology), congestion(program, topology).rate, packing.bound, packing.prices};
}

}  // namespace

const char* name(Synthesis how) { return how == Synthesis::exact ? "exact" : how == Synthesis::blink ? "blink" : "trees"; }

std::optional<Demand> demand_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return Demand::all_reduce;
    case Collective::broadcast: return Demand::broadcast;
    case Collective::reduce: return Demand::reduce;
    case Collective::all_gather: return Demand::all_gather;
    case Collective::reduce_scatter: return Demand::reduce_scatter;
    case Collective::gather: case Collective::scatter: case Collective::all_to_all: break;
  }
  return std::nullopt;
}

Program synthesize(const topo::Topology& topology, Collective collective, Synthesis how, std::uint32_t root) {
  const Demand demand = checked_demand(collective);
  const Network network(topology);
  const std::uint32_t ranks = checked_ranks(network, topology, root);
  if (ranks == 1) return tree_program(name(how), collective, 1, {});

  const Packing packing = pack(network, demand, how, root);  // Blink's trees stay as that paper packs them
  const std::vector<packing::Tree> routed = how == Synthesis::blink
      ? packing.trees : packing::along_routes(topology, packing, how == Synthesis::few, ranks <= kMostExactHosts).trees;
  double all = 0;
  for (const packing::Tree& tree : routed) all += tree.rate;
  std::vector<DataTree> trees;
  for (const packing::Tree& tree : routed) trees.push_back(data_tree(tree, ranks, all));
  Program program = tree_program(name(how), collective, ranks, trees, root);
  if (how == Synthesis::blink && collective == Collective::all_reduce && are_shared(servers_in(topology))) {
    // Three phases have fewer hops, and are taken where they cost no more of the rate than few trees may.
    Program phased = tree_program("blink_servers", collective, ranks, three_phases(topology));
    if (congestion(phased, topology).rate >= (1 - packing::Blink{}.loss) * congestion(program, topology).rate) program = std::move(phased);
  }
  // Blink's own prices prove its bound to 1 - eps only.
  program.certificate = certificate(program, topology, how == Synthesis::blink ? pack(network, demand, best_known(network), root) : packing);
  return program;
}

Program kept_or_synthesized(const topo::Topology& topology, Collective collective, Synthesis how, std::uint32_t root, const ProgramCache& cache) {
  return cache.kept_or_made(topology, collective, name(how), root, [&] { return synthesize(topology, collective, how, root); });
}

std::optional<Program> hybrid(const topo::Topology& topology, Collective collective, std::uint32_t root, double bytes) {
  const Demand demand = checked_demand(collective);
  const auto hosts = static_cast<topo::Node>(topology.hosts.size());
  const Network network(topology);
  const std::uint32_t ranks = checked_ranks(network, topology, root);
  std::vector<Packing> packings;
  std::vector<packing::Channel> kinds;
  for (const bool by_switches : {false, true}) {
    topo::Topology kind = topology;
    std::erase_if(kind.links, [&](const topo::Link& link) { return (link.from >= hosts || link.to >= hosts) != by_switches; });
    if (kind.links.empty() || !leads_everywhere(kind)) return std::nullopt;
    packings.push_back(pack(Network(kind), demand, Synthesis::blink, root));
    Nanoseconds longest{};
    for (const topo::Link& link : kind.links) longest = std::max(longest, link.latency);
    std::size_t hops = 0;
    for (const packing::Tree& tree : packings.back().trees) hops = std::max<std::size_t>(hops, packing::height(tree));
    const double passes = (by_switches ? 2.0 : 1.0) * (collective == Collective::all_reduce ? 2 : 1);
    const double begins = topology.relative ? 0 : passes * static_cast<double>(hops) * std::chrono::duration<double>(longest).count();
    kinds.push_back({packings.back().rate, begins});
  }
  const packing::Split split = packing::split(bytes, kinds);
  std::vector<DataTree> trees;
  std::vector<bool> by_switches;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (split.data[kind] <= 0) return std::nullopt;
    for (const packing::Tree& tree : packings[kind].trees) {
      trees.push_back(data_tree(tree, ranks, packings[kind].rate * bytes / split.data[kind]));
      by_switches.push_back(kind == 1);
    }
  }
  Program program = tree_program("blink_hybrid", collective, ranks, trees, root);
  program.by_switches = std::move(by_switches);
  program.certificate = certificate(program, topology, pack(network, demand, best_known(network), root));
  return program;
}

bool has_bound(Collective collective) { return demand_of(collective).has_value(); }

void certify(Program& program, const topo::Topology& topology) {
  const Demand demand = checked_demand(program.collective);
  const Network network(topology);
  if (checked_ranks(network, topology, program.root) != program.ranks) {
    throw Error(Code::invalid_argument, fmt::format("a program of {} ranks on {} hosts", program.ranks, network.hosts()), topology.name);
  }
  if (program.ranks > 1) program.certificate = certificate(program, topology, pack(network, demand, best_known(network), program.root));
}

Proof check_certificate(const Program& program, const topo::Topology& topology) {
  const auto refuse = [&](const std::string& what) { throw Error(Code::invalid_argument, what, "program " + program.name); };
  if (!program.certificate) refuse("it has no certificate: it was made for no topology");
  const Certificate& claim = *program.certificate;
  if (claim.topology != topo::digest(topology)) refuse(fmt::format("its certificate is for another topology than {}", topology.name));
  const std::optional<Demand> demand = demand_of(program.collective);
  const Network network(topology);
  if (!demand || claim.prices.size() != network.arcs().size()) {
    refuse(fmt::format("its certificate has {} prices for {} arcs", claim.prices.size(), network.arcs().size()));
  }
  Proof proof;
  proof.bound = packing::bound(network, *demand, program.root, claim.prices);
  const Congestion busy = congestion(program, topology);
  proof.rate = busy.rate;
  proof.busiest = busy.busiest;
  constexpr double kSlack = 1e-6;  // of numbers written as decimals
  if (!(proof.bound > 0 && std::isfinite(proof.bound))) refuse("its prices prove no bound");
  if (!(proof.bound <= claim.bound * (1 + kSlack))) {
    refuse(fmt::format("its prices prove a bound of {:.6g}, not of {:.6g}", proof.bound, claim.bound));
  }
  if (!(proof.rate >= claim.rate * (1 - kSlack))) refuse(fmt::format("its ops come to a rate of {:.6g}, not of {:.6g}", proof.rate, claim.rate));
  return proof;
}

}  // namespace shoal::collective
