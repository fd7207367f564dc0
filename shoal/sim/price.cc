#include "shoal/sim/price.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "shoal/collective/certificate.h"
#include "shoal/core/error.h"
#include "shoal/sim/run_program.h"

namespace shoal::sim {
namespace {

Outcome alone_on(std::shared_ptr<const collective::Program> program, const topo::Topology& topology, double bytes, const Costs& costs) {
  Job job;
  job.name = program->name;
  job.elements = static_cast<std::uint64_t>(bytes / job.element_bytes);
  job.program = std::move(program);
  for (topo::Node host = 0; host < topology.hosts.size(); ++host) job.hosts.push_back(host);
  return simulate(topology, std::span(&job, 1), {}, costs);
}

}  // namespace

double simulated_seconds(const collective::Program& program, const topo::Topology& topology, double bytes, const Costs& costs) {
  return alone_on(std::make_shared<const collective::Program>(program), topology, bytes, costs).seconds;
}

void check_bytes(double bytes) {
  if (!(bytes >= 0 && bytes < 1e18)) throw Error(Code::invalid_argument, "is no number of bytes", "bytes");
}

ProgramPrice price(collective::Program program, const topo::Topology& topology, double bytes, const Costs& costs) {
  check_bytes(bytes);
  const auto refuse = [&](const std::string& what, const std::string& hint) { throw Error(Code::invalid_argument, what, "topology " + topology.name, hint); };
  if (topology.relative) refuse("has rates in link units, which say nothing of seconds", "give its links rates in bytes/s, Mbit/s, ...");
  if (program.ranks != topology.hosts.size()) {
    refuse(fmt::format("has {} hosts, the program {} ranks", topology.hosts.size(), program.ranks), "");
  }
  if (!program.certificate && collective::has_bound(program.collective)) certify(program, topology);
  ProgramPrice price;
  if (program.certificate) price.bound_seconds = bytes / check_certificate(program, topology).bound / costs.goodput;
  const Outcome outcome = alone_on(std::make_shared<const collective::Program>(std::move(program)), topology, bytes, costs);
  price.seconds = outcome.seconds;
  if (!topology.links.empty()) price.bottleneck = topology.link_name(topology.links[outcome.bottleneck]);
  return price;
}

}  // namespace shoal::sim
