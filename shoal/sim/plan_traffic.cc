#include "shoal/sim/plan_traffic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "shoal/collective/author.h"
#include "shoal/collective/select.h"
#include "shoal/core/error.h"
#include "shoal/exchange/plan_price.h"
#include "shoal/sim/named_program.h"
#include "shoal/sim/scenario.h"

namespace shoal::sim {
namespace {

using exchange::Leg;
using exchange::Unit;
using Ends = std::vector<Awaited>;

struct Moment {         // on each host: so many seconds after its parts in all of these
  Ends after;
  double seconds = 0;
  Moment later(double by) const { return {after, seconds + by}; }
};

class PlanJobs {
 public:
  PlanJobs(const PlanTraffic& traffic, std::vector<Job>& jobs) : traffic_(traffic), plan_(traffic.plan), jobs_(jobs) {
    for (const Unit& unit : plan_.units) {
      const auto way = exchange::way_named(unit.way);
      const exchange::Load load = exchange::load_of(plan_, unit);
      way->check(plan_.ranks);
      legs_.push_back(way->legs(load));
      if (!plan_.settled) computing_ += way->computing(load);
    }
  }

  void add_all() {
    const exchange::Choice choice = exchange::parse_choice(plan_.choice, traffic_.name);
    if (choice.served) {
      throw Error(Code::unsupported,
                  fmt::format("its parameters are served by tables ({}), and nothing of it travels by a way", plan_.choice),
                  traffic_.name, "simulate [[table]]s: workers, shards, rows");
    }
    if (choice.rounds) return add_rounds(*choice.rounds);
    Moment begin{{}, traffic_.start};
    for (std::uint32_t i = 0; i < traffic_.iterations; ++i) begin = iteration(begin);
  }

 private:
  double between() const { return plan_.stepping_seconds() + computing_; }

  // From the start of backward.
  double ready(const Unit& unit) const {
    double ready = 0;
    for (const std::uint32_t tensor : unit.tensors) {
      const double at = plan_.tensors[tensor].backward_at;
      ready = std::max(ready, at >= 0 ? at : plan_.backward_seconds);
    }
    return ready;
  }

  // When the next one begins.
  Moment iteration(const Moment& begin) {
    first_ = jobs_.size();
    const double forward = plan_.forward_seconds;
    struct Stop {          // of the passes, at a moment of them
      double at;
      std::size_t unit;
      Leg::When when;
    };
    std::vector<Stop> stops;
    for (std::size_t u = 0; u < plan_.units.size(); ++u) {
      const double needed = plan_.tensors[plan_.units[u].tensors.front()].forward_at;
      if (has(u, Leg::When::forward)) stops.push_back({std::max(needed, 0.0), u, Leg::When::forward});
      if (has(u, Leg::When::backward)) stops.push_back({forward + ready(plan_.units[u]), u, Leg::When::backward});
    }
    std::ranges::stable_sort(stops, {}, &Stop::at);
    std::vector<std::pair<double, Moment>> known{{0, begin}};  // the passes go on from here
    const auto moment = [&](double at) {
      const auto next = std::ranges::upper_bound(known, at, {}, [](const auto& entry) { return entry.first; });
      return std::prev(next)->second.later(at - std::prev(next)->first);
    };
    for (const Stop& stop : stops) known.emplace_back(stop.at, Moment{run(stop.unit, stop.when, moment(stop.at)), 0});
    Ends means;
    for (std::size_t u = 0; u < plan_.units.size(); ++u) {
      if (has(u, Leg::When::mean)) append(means, run(u, Leg::When::mean, moment(forward + ready(plan_.units[u]))));
    }
    if (means.empty()) means = pause(moment(forward + plan_.backward_seconds));
    Ends back;
    for (std::size_t u = 0; u < plan_.units.size(); ++u) {
      if (has(u, Leg::When::after)) append(back, run(u, Leg::When::after, {means, between()}));
    }
    return back.empty() ? Moment{means, between()} : Moment{back, 0};
  }

  // A fragment leaves when it is due, and the one before it has come; a single one is waited for. All of its gradients are there: they are what steps have changed.
  void add_rounds(exchange::Rounds rounds) {
    rounds.fragments = plan_.turns();
    const double step = plan_.forward_seconds + plan_.backward_seconds + between();
    std::uint32_t steps = 0, synchronised = 0;  // since the last one that was due
    Moment last{{}, traffic_.start};
    Ends under_way;
    for (std::uint32_t i = 1; i <= traffic_.iterations; ++i) {
      ++steps;
      if (!rounds.is_due(i)) continue;
      Moment due = last.later(std::exchange(steps, 0) * step);
      if (rounds.fragments > 1) {
        due = {pause(due), 0};
        append(due.after, under_way);
      }
      first_ = jobs_.size();
      under_way.clear();
      for (std::size_t u = 0; u < plan_.units.size(); ++u) {
        if (plan_.units[u].turn == synchronised % rounds.fragments) append(under_way, run(u, Leg::When::mean, due));
      }
      ++synchronised;
      last = rounds.fragments > 1 ? due : Moment{under_way, 0};
    }
  }

  static void append(Ends& all, const Ends& more) { all.insert(all.end(), more.begin(), more.end()); }
  bool has(std::size_t unit, Leg::When when) const {
    return std::ranges::find(legs_[unit], when, &Leg::when) != legs_[unit].end();
  }

  // Its legs of that time, one behind the other where they are not beside each other. What has ended when the last have.
  Ends run(std::size_t unit, Leg::When when, const Moment& begin) {
    Moment next = begin;
    Ends last;
    for (const Leg& leg : legs_[unit]) {
      if (leg.when != when) continue;
      if (!leg.beside && !last.empty()) next = {std::exchange(last, {}), 0};
      last.push_back(add(leg, plan_.units[unit], next));
    }
    return last;
  }

  Awaited add(const Leg& leg, const Unit& unit, const Moment& begin) {
    const NamedProgram& named = program_of(leg);
    Job job;
    job.name = plan_.name_of(unit);
    job.program = named.program;
    job.fewer = named.fewer;
    job.elements = leg.elements;
    if (!leg.chunks.empty()) {
      auto& chunks = chunks_[&leg];
      if (!chunks) chunks = std::make_shared<const std::vector<std::uint64_t>>(leg.chunks);
      job.chunks = chunks;
    }
    job.element_bytes = static_cast<double>(leg.element_bytes);
    for (const std::uint32_t rank : leg.members) job.hosts.push_back(traffic_.hosts[rank]);
    if (leg.members.empty()) job.hosts = traffic_.hosts;
    job.priority = unit.priority;
    return push(std::move(job), begin);
  }

  // Nothing is sent: a moment that others wait for.
  Ends pause(const Moment& begin) {
    Job job;
    job.name = "steps";
    collective::Author author("steps", collective::Collective::broadcast, plan_.ranks, collective::AddOrder::none);
    author.chunks(1);
    job.program = std::make_shared<const collective::Program>(author.take());
    job.hosts = traffic_.hosts;
    return {push(std::move(job), begin)};
  }

  Awaited push(Job job, const Moment& begin) {
    if (jobs_.size() >= kMostScenarioJobs) {
      throw Error(Code::invalid_argument, fmt::format("more than {} jobs", kMostScenarioJobs), traffic_.name,
                  "fewer iterations");
    }
    job.after = begin.after;
    job.start = begin.seconds;
    job.together = jobs_.size() > first_ && jobs_.back().hosts == job.hosts;
    jobs_.push_back(std::move(job));
    return {static_cast<std::uint32_t>(jobs_.size() - 1)};
  }

  // By fewer members only where a leg is cut alike for any number of them; what is made for a network has none for fewer, either.
  const NamedProgram& program_of(const Leg& leg) {
    NamedProgram& named = programs_[{leg.collective, leg.program, leg.size(plan_.ranks)}];
    if (named.program) return named;
    const bool is_any_number =
        leg.collective == collective::Collective::all_reduce && leg.members.empty() && leg.chunks.empty();
    if (is_any_number && !collective::is_of_network(leg.program)) {
      named = named_program(leg.collective, leg.program, plan_.ranks);
    } else {
      named.program =
          std::make_shared<const collective::Program>(exchange::program_of(leg, plan_.ranks, plan_.link.network.get()));
    }
    return named;
  }

  const PlanTraffic& traffic_;
  const exchange::ExchangePlan& plan_;
  std::vector<Job>& jobs_;
  std::vector<std::vector<Leg>> legs_;  // by unit
  std::map<const Leg*, std::shared_ptr<const std::vector<std::uint64_t>>> chunks_;  // of legs_, for all iterations
  double computing_ = 0;  // of an iteration, for the ways
  std::size_t first_ = 0;  // job of this iteration
  std::map<std::tuple<collective::Collective, std::string, std::uint32_t>, NamedProgram> programs_;
};

}  // namespace

void add_jobs(const PlanTraffic& traffic, std::vector<Job>& jobs) {
  if (traffic.hosts.size() != traffic.plan.ranks) {
    throw Error(Code::invalid_argument,
                fmt::format("{} hosts for a plan of {} members", traffic.hosts.size(), traffic.plan.ranks), traffic.name);
  }
  PlanJobs(traffic, jobs).add_all();
}

}  // namespace shoal::sim
