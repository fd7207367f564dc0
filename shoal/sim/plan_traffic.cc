#include "shoal/sim/plan_traffic.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "shoal/collective/build.h"
#include "shoal/collective/select.h"
#include "shoal/core/error.h"

namespace shoal::sim {

void add_jobs(const PlanTraffic& traffic, std::vector<Job>& jobs) {
  const exchange::ExchangePlan& plan = traffic.plan;
  if (traffic.hosts.size() != plan.ranks) {
    throw Error(Code::invalid_argument, fmt::format("{} hosts for a plan of {} members", traffic.hosts.size(), plan.ranks), traffic.name);
  }
  std::map<std::string, std::shared_ptr<const collective::Program>> programs;
  std::vector<Awaited> before;  // the iteration before
  for (std::uint32_t iteration = 0; iteration < traffic.iterations; ++iteration) {
    std::vector<Awaited> these;
    for (const exchange::Unit& unit : plan.units) {
      if (!exchange::is_all_reduce(unit)) {
        throw Error(Code::unsupported, fmt::format("{} goes by \"{}\", which is not simulated", plan.name_of(unit), unit.way), traffic.name,
                    "plans of all-reduces are: shoal plan --plan ring");
      }
      auto& program = programs[unit.way];
      if (!program) {
        constexpr auto kind = collective::Collective::all_reduce;
        program = std::make_shared<const collective::Program>(
            collective::is_of_network(unit.way) ? collective::program_named(kind, unit.way, plan.ranks, 0, plan.link.network.get()).program()
                                                : collective::build(kind, unit.way, plan.ranks));
      }
      double ready = 0;  // from the start of backward
      for (const std::uint32_t tensor : unit.tensors) {
        const double at = plan.tensors[tensor].backward_at;
        ready = std::max(ready, at >= 0 ? at : plan.backward_seconds);
      }
      Job job;
      job.name = plan.name_of(unit);
      job.program = program;
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
