#include "shoal/sim/plan_traffic.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "shoal/collective/known_network.h"
#include "shoal/collective/select.h"
#include "shoal/core/error.h"
#include "shoal/sim/named_program.h"

namespace shoal::sim {
namespace {

// One that is made for a network has none for fewer members.
NamedProgram program_of(const exchange::ExchangePlan& plan, const std::string& way) {
  constexpr auto kind = collective::Collective::all_reduce;
  if (!collective::is_of_network(way)) return named_program(kind, way, plan.ranks);
  return {std::make_shared<const collective::Program>(collective::program_named(kind, way, plan.ranks, 0, plan.link.network.get()).program()), {}};
}

}  // namespace

void add_jobs(const PlanTraffic& traffic, std::vector<Job>& jobs) {
  const exchange::ExchangePlan& plan = traffic.plan;
  if (traffic.hosts.size() != plan.ranks) {
    throw Error(Code::invalid_argument, fmt::format("{} hosts for a plan of {} members", traffic.hosts.size(), plan.ranks), traffic.name);
  }
  if (plan.servers > 0) throw Error(Code::unsupported, "plans with members that only serve are not simulated", traffic.name);
  std::map<std::string, NamedProgram> programs;
  std::vector<Awaited> before;  // the iteration before
  for (std::uint32_t iteration = 0; iteration < traffic.iterations; ++iteration) {
    std::vector<Awaited> these;
    for (const exchange::Unit& unit : plan.units) {
      if (!exchange::is_all_reduce(unit)) {
        throw Error(Code::unsupported, fmt::format("{} goes by \"{}\", which is not simulated", plan.name_of(unit), unit.way), traffic.name,
                    "plans of all-reduces are: shoal plan --plan ring");
      }
      NamedProgram& named = programs[unit.way];
      if (!named.program) named = program_of(plan, unit.way);
      double ready = 0;  // from the start of backward
      for (const std::uint32_t tensor : unit.tensors) {
        const double at = plan.tensors[tensor].backward_at;
        ready = std::max(ready, at >= 0 ? at : plan.backward_seconds);
      }
      Job job;
      job.name = plan.name_of(unit);
      job.program = named.program;
      job.fewer = named.fewer;
      job.together = !these.empty();
      job.elements = plan.bytes_of(unit);
      job.element_bytes = 1;
      job.hosts = traffic.hosts;
      job.start = (iteration == 0 ? traffic.start : plan.step_seconds) + plan.forward_seconds + ready;
      job.after = before;
      job.priority = unit.priority;
      these.push_back({static_cast<std::uint32_t>(jobs.size())});
      jobs.push_back(std::move(job));
    }
    before = std::move(these);
  }
}

}  // namespace shoal::sim
