#include "shoal/collective/certificate.h"

#include <fmt/format.h>

#include <cmath>

#include "shoal/collective/congestion.h"
#include "shoal/core/error.h"

namespace shoal::collective {

namespace {

using packing::Demand;
using packing::Network;
using packing::Packing;

Demand checked_demand(Collective collective) {
  if (const std::optional<Demand> demand = demand_of(collective)) return *demand;
  throw Error(Code::unsupported, fmt::format("no trees are packed for {}", name(collective)), "synthesize",
              "all_reduce, broadcast, reduce, all_gather or reduce_scatter");
}

}  // namespace

std::optional<Demand> demand_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return Demand::all_reduce;
    case Collective::broadcast: return Demand::broadcast;
    case Collective::reduce: return Demand::reduce;
    case Collective::all_gather: return Demand::all_gather;
    case Collective::reduce_scatter: return Demand::reduce_scatter;
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: break;
  }
  return std::nullopt;
}

bool has_bound(Collective collective) { return demand_of(collective).has_value(); }

PackingTask::PackingTask(const topo::Topology& topology, Collective collective, std::uint32_t root_in)
    : demand(checked_demand(collective)), network(topology), ranks(network.hosts()), root(root_in) {
  if (ranks > kMaxRanks)
    throw Error(Code::unsupported, fmt::format("{} hosts; a program has at most {}", ranks, kMaxRanks), topology.name);
  if (root >= ranks) throw Error(Code::invalid_argument, fmt::format("root {} of {} hosts", root, ranks), topology.name);
}

Packing PackingTask::best() const {
  return ranks <= kMostExactHosts ? packing::pack_exactly(network, demand, root) : packing::pack_few(network, demand, root);
}

void PackingTask::check_searched(const char* mode) const {
  if (ranks <= kMostExactHosts) return;
  throw Error(Code::unsupported, fmt::format("a network of {} hosts; at most {} are searched", ranks, kMostExactHosts), mode,
              "take few: it proves a bound, too");
}

Certificate certificate(const Program& program, const topo::Topology& topology, const Packing& packing) {
  return {topo::digest(topology), congestion(program, topology).rate, packing.bound, packing.prices};
}

void certify(Program& program, const topo::Topology& topology) {
  const PackingTask task(topology, program.collective, program.root);
  if (task.ranks != program.ranks) {
    throw Error(Code::invalid_argument, fmt::format("a program of {} ranks on {} hosts", program.ranks, task.ranks),
                topology.name);
  }
  if (program.ranks > 1) program.certificate = certificate(program, topology, task.best());
}

Proof check_certificate(const Program& program, const topo::Topology& topology) {
  const auto refuse = [&](const std::string& what) { throw Error(Code::invalid_argument, what, "program " + program.name); };
  if (program.ranks == 1) refuse("one rank sends nothing: there is no bound to prove");
  if (!program.certificate) refuse("it has no certificate: it was made for no topology");
  const Certificate& claim = *program.certificate;
  if (claim.topology != topo::digest(topology))
    refuse(fmt::format("its certificate is for another topology than {}", topology.name));
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
  if (!(proof.rate >= claim.rate * (1 - kSlack)))
    refuse(fmt::format("its ops come to a rate of {:.6g}, not of {:.6g}", proof.rate, claim.rate));
  return proof;
}

}  // namespace shoal::collective
