// Networks, over the text in which they are written, and what would happen on them: plans foreseen, scenarios simulated. python/shoal/networks.py makes
// values of the texts.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <functional>
#include <map>

#include "bindings.h"
#include "shoal/core/read_text.h"
#include "shoal/exchange/plan_question.h"
#include "shoal/nn/models/known_model.h"
#include "shoal/sim/report.h"
#include "shoal/topo/draw.h"
#include "shoal/topo/import.h"
#include "shoal/topo/infer.h"
#include "shoal/topo/named_form.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using py::literals::operator""_a;

std::string read_network(const std::string& file) { return to_json(topo::import_topology(std::filesystem::path(file)).topology); }

using Said = std::map<std::string, std::string>;

std::string generate_network(const std::string& name, const std::string& size, Said said, const std::vector<std::string>& dead) {
  return to_json(topo::generate({name, size, said["rate"], said["latency"], said["rates"], said["uplink"], said["uplink_latency"], said["wrap"], dead}));
}

// together: called with pairs of hosts that send at the same time, returns the rate of each.
std::string infer_network(const std::vector<std::string>& hosts, const std::vector<double>& rate, const std::vector<double>& latency,
                          const std::function<std::vector<double>(const std::vector<std::pair<std::uint32_t, std::uint32_t>>&)>& together) {
  return to_json(topo::infer(hosts, {rate, latency}, [&](std::span<const topo::Flow> flows) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const topo::Flow& flow : flows) pairs.emplace_back(flow.from, flow.to);
    return together(pairs);
  }));
}

std::string known_model(const std::string& name) { return to_json(nn::models::known_model(name)); }

std::string foresee(const std::string& model, const std::string& network, const std::string& where, const std::string& choice, double samples, bool whole_batch,
                    double flops, const std::string& alpha, const std::string& add_rate, double overlap) {
  exchange::PlanQuestion question = exchange::question_of(
      {.choice = choice,
       .network = exchange::Asked::Network{topo::topology_from_json(network), where, collective::ProgramCache::of_user()},
       .alpha = alpha,
       .add_rate = add_rate,
       .batch = samples,
       .whole_batch = whole_batch,
       .flops = flops,
       .overlap = overlap},
      "");
  question.model = exchange::model_from_json(model, "model");
  return to_json(question, answer(question));
}

// files: texts that the scenario may name, beside files in `folder`.
std::string simulate(const std::string& text, const std::string& where, const std::string& folder, const Said& files) {
  const sim::Scenario scenario = sim::scenario_from_toml(text, where, [&](const std::string& file) {
    const auto given = files.find(file);
    return given != files.end() ? given->second : read_text(std::filesystem::path(folder) / file);
  });
  return to_json(scenario, sim::simulate(scenario));
}

}  // namespace

void bind_networks(py::module_& module) {
  module.def("network_read", &read_network, "file"_a);
  module.def("network_checked", [](const std::string& json) { return to_json(topo::topology_from_json(json)); }, "json"_a);
  module.def("network_generate", &generate_network, "form"_a, "size"_a, "said"_a, "dead"_a);
  module.def("network_infer", &infer_network, "hosts"_a, "rate"_a, "latency"_a, "together"_a);
  module.def("network_draw", [](const std::string& json) { return to_svg(topo::topology_from_json(json)); }, "json"_a);
  module.def("known_model", &known_model, "name"_a);
  module.def("foresee", &foresee, "model"_a, "network"_a, "where"_a, "choice"_a, "samples"_a, "whole_batch"_a, "flops"_a, "alpha"_a, "add_rate"_a, "overlap"_a,
             Released());
  module.def("simulate", &simulate, "text"_a, "where"_a, "folder"_a, "files"_a, Released());
}

}  // namespace shoal::python
