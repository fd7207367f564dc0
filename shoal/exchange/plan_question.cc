#include "shoal/exchange/plan_question.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shoal/collective/certificate.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::exchange {
namespace {

collective::LinkModel link_of(const Asked& asked) {
  collective::LinkModel link;
  link.rate = parse_rate(asked.rate);
  link.add_rate = parse_rate(asked.add_rate);
  link.alpha = std::chrono::duration<double>(parse_duration(asked.alpha)).count();
  return link;
}

// Of the machine's link stay the cost of a step and the rate of additions.
void take_network(Cluster& cluster, const Asked::Network& network) {
  const auto hosts = static_cast<std::uint32_t>(network.topology.hosts.size());
  if (cluster.members == 0) cluster.members = hosts;
  if (cluster.members != hosts) refuse(fmt::format("{} has {} hosts, not {}", network.where, hosts, cluster.members), "-n");
  if (hosts > collective::kMostExactHosts) {
    refuse(fmt::format("has {} hosts; plans are foreseen link by link for up to {}", hosts, collective::kMostExactHosts), network.where,
           "without --topology, with --rate");
  }
  cluster.machine.link = link_on(collective::KnownNetwork::made_for(network.topology, network.cache), cluster.machine.link);
}

}  // namespace

double within(double value, double least, double most, const std::string& where) {
  if (!(value >= least && value <= most)) refuse(fmt::format("{:g} is not from {:g} to {:g}", value, least, most), where);
  return value;
}

PlanQuestion question_of(const Asked& asked, const std::string& dashes) {
  PlanQuestion question;
  question.choice = parse_choice(asked.choice, dashes + "plan");
  if (!question.choice.file.empty()) refuse("a saved plan is replayed as it is: there is nothing to predict", dashes + "plan");
  question.overlap = within(asked.overlap, 0, 1, dashes + "overlap");
  Cluster& cluster = question.cluster;
  cluster.members = asked.members;
  cluster.machine = asked.measured ? *asked.measured : Machine{0, link_of(asked)};
  if (asked.flops) {
    within(*asked.flops / 1e9, 1e-6, 1e12, dashes + "gflops");
    cluster.machine.flops = *asked.flops;
  }
  cluster.samples = within(asked.batch, 1, 1e12, dashes + "batch");
  if (asked.network) take_network(cluster, *asked.network);
  if (asked.whole_batch) cluster.samples /= cluster.members;
  return question;
}

double rate_of(const collective::KnownNetwork& known, const char* program) {
  return known.rate(collective::Collective::all_reduce, program);
}

PlanAnswer answer(const PlanQuestion& question) {
  const double whole_batch = question.cluster.samples * question.cluster.members;
  return {forecast(question.model, question.cluster, question.choice),
          balance(question.model, question.cluster.members, whole_batch, question.overlap),
          seconds_balanced(question.model, question.cluster.machine, question.cluster.members, whole_batch, question.overlap)};
}

std::string to_json(const PlanQuestion& question, const PlanAnswer& answer) {
  using Json = nlohmann::ordered_json;
  const auto& f = answer.forecast;
  const auto& machine = question.cluster.machine;
  Json rows = Json::array(), scaling = Json::array(), rates = Json::array(), layers = Json::array();
  for (const auto& r : f.rows) {
    rows.push_back({{"choice", r.choice},
                    {"exact", r.exact},
                    {"seconds", r.seconds},
                    {"bytes", r.bytes},
                    {"speedup", r.speedup},
                    {"over_ddp", r.gain}});
  }
  for (const auto& s : f.scaling) {
    scaling.push_back({{"members", s.members}, {"seconds", s.seconds}, {"speedup", s.speedup}, {"ddp_speedup", s.ddp_speedup}});
  }
  for (const auto& b : f.break_even)
    rates.push_back({{"what", b.what}, {"rate", std::isfinite(b.rate) ? Json(b.rate) : Json()}});
  for (const auto& b : answer.balance) {
    layers.push_back({{"layer", b.layer},
                      {"share", b.share()},
                      {"groups", b.groups},
                      {"best_groups", b.best_groups},
                      {"ops_per_byte", b.flops_a_byte},
                      {"data_bytes", b.data},
                      {"model_bytes", b.model},
                      {"bytes", b.hybrid}});
  }
  Json all = {{"model", question.model.name},
              {"parameters", question.model.parameters()},
              {"forward_flops", question.model.forward_flops()},
              {"members", question.cluster.members},
              {"samples", question.cluster.samples},
              {"rate", machine.link.rate},
              {"alpha_s", machine.link.alpha},
              {"flops", machine.flops},
              {"choice", to_text(question.choice)},
              {"seconds", f.chosen.seconds},
              {"computing_s", f.chosen.computing},
              {"link_s", f.chosen.on_the_link},
              {"bytes", f.chosen.bytes},
              {"speedup", f.chosen.speedup()},
              {"limit", name(f.regime)},
              {"ways", rows},
              {"scaling", scaling},
              {"break_even", rates},
              {"system_balance", system_balance(machine)},
              {"balance", layers},
              {"balanced_s", answer.balanced_seconds},
              {"plan", Json::parse(to_json(f.chosen.plan))}};
  if (const auto& known = machine.link.network) {
    for (const char* program : {collective::kTrees, "ring"}) all["network_rates"][program] = rate_of(*known, program);
    for (const char* form : collective::kForms) {
      if (rate_of(*known, form) > 0) all["network_rates"][form] = rate_of(*known, form);
    }
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shoal::exchange
