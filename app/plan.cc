// shoal plan MODEL -n N: what an iteration would take by each way, before anything runs.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/plan_report.h"
#include "app/python.h"
#include "app/run.h"
#include "app/spawn.h"
#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "shoal/core/text.h"
#include "shoal/nn/models/known_model.h"
#include "shoal/nn/models/model.h"
#include "shoal/topo/import.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanoseconds kPatience = 120s;            // a factory imports PyTorch, and whatever else it needs
constexpr std::size_t kLargestFile = 256 << 20;
constexpr double kBackwardAndForward = 3;          // an iteration's operations, in forward passes

struct PlanOptions {
  std::string model, sample, rate, alpha = "100us", add_rate = "8GB/s", choice = "auto", measured, topology, svg;
  int members = 0, sharing = 1;
  double batch = 32, gflops = 0, samples_a_second = 0, overlap = 1;
  bool whole_batch = false, json = false;
};

std::string contents(const std::string& file) {
  std::string text = read_text(file, kLargestFile);
  if (text.size() > kLargestFile) refuse("is larger than 256 MiB", file);
  return text;
}

// A factory's model is traced by the Python beside this program, which has PyTorch.
exchange::Model traced(const PlanOptions& options) {
  auto command = python_module("shoal.describe");
  command.push_back(options.model);
  if (!options.sample.empty()) command.insert(command.end(), {"--sample", options.sample});
  const ToolResult result = run_tool(command, kPatience);
  if (result.status != 0) {
    std::string line = last_line(result.err);
    if (line.starts_with("shoal: ")) line = line.substr(7);
    if (line.empty()) {
      const bool killed = result.status > 128;
      line = fmt::format("{}: its Python ended with {} {}", options.model, killed ? "signal" : "status", result.status - (killed ? 128 : 0));
    }
    refuse(line, "shoal plan");
  }
  if (result.out.empty()) refuse("its Python ended before it was described", options.model, "the factory must return");
  return exchange::model_from_json(result.out, options.model);
}

exchange::Model model_of(const PlanOptions& options) {
  if (options.model.ends_with(".json")) return exchange::model_from_json(contents(options.model), options.model);
  if (options.model.find(':') != std::string::npos) return traced(options);
  return nn::models::known_model(options.model);
}

double at_least(double value, double least, const char* flag) {
  if (!std::isfinite(value) || value < least) refuse(fmt::format("{:g} is less than {:g}", value, least), flag);
  return value;
}

// A cluster as `shoal doctor -n N --json` measured it.
void take_measured(const std::string& file, exchange::Cluster& cluster) {
  try {
    const auto told = nlohmann::json::parse(contents(file));
    const auto& link = told.at("link");
    cluster.machine.link = {link.at("alpha_s"), link.at("rate"), link.at("add_rate"), link.at("fan_in"), link.at("fan_in_alpha_s"), link.value("saves", 0.0)};
    std::vector<double> flops;  // of those members that have a PyTorch to measure
    for (const auto& member : told.at("members")) {
      if (member.at("flops").is_number()) flops.push_back(member.at("flops"));
    }
    cluster.machine.flops = flops.empty() ? 0 : *std::min_element(flops.begin(), flops.end());
    if (cluster.members == 0) cluster.members = static_cast<std::uint32_t>(told.at("members").size());
  } catch (const nlohmann::json::exception& error) {
    refuse("is not what doctor measured", file, "shoal doctor -n 4 --json > " + file);
  }
}

double measured_here() {
  const ToolResult result = run_tool(python_module("shoal.gemm_rate"), kPatience);
  if (result.status != 0) refuse(last_line(result.err), "shoal plan", "--gflops says how fast a member computes");
  return nlohmann::json::parse(result.out).at("flops");
}

// The links are those of a file, and members its hosts.
void take_topology(const PlanOptions& options, exchange::Cluster& cluster) {
  const std::string& file = options.topology;
  if (!options.rate.empty()) refuse("the rates are those of " + file, "--rate");
  take_network(cluster, topo::import_topology(fs::path(file)).topology, file, collective::ProgramCache::of_user());
}

exchange::Cluster cluster_of(const PlanOptions& options, const exchange::Model& model) {
  exchange::Cluster cluster;
  cluster.members = static_cast<std::uint32_t>(std::max(0, options.members));
  cluster.machine.link.rate = parse_rate(options.rate.empty() ? "1gbit" : options.rate);
  cluster.machine.link.add_rate = parse_rate(options.add_rate);
  cluster.machine.link.alpha = std::chrono::duration<double>(parse_duration(options.alpha)).count();
  if (!options.measured.empty()) take_measured(options.measured, cluster);
  if (!options.topology.empty() && options.members >= 0) take_topology(options, cluster);
  if (options.members < 0 || cluster.members < 1 || cluster.members > most_members) {
    refuse(fmt::format("a run has 1 to {} members, not {}", most_members, options.members), "-n");
  }
  cluster.samples = at_least(options.batch, 1, "--batch") / (options.whole_batch ? cluster.members : 1);
  if (options.gflops != 0) cluster.machine.flops = 1e9 * at_least(options.gflops, 1e-6, "--gflops");
  if (options.samples_a_second != 0) {
    cluster.machine.flops = kBackwardAndForward * model.forward_flops() * at_least(options.samples_a_second, 1e-9, "--samples-per-second");
  }
  if (cluster.machine.flops <= 0) cluster.machine.flops = measured_here();
  if (options.sharing < 1 || options.sharing > most_members) refuse(fmt::format("{} members cannot share a machine", options.sharing), "--sharing");
  cluster.machine.flops /= options.sharing;
  cluster.machine.link.add_rate /= options.sharing;
  return cluster;
}

int plan(const PlanOptions& options) {
  PlanQuestion question;
  question.choice = exchange::parse_choice(options.choice, "--plan");
  if (!question.choice.file.empty()) refuse("a saved plan is replayed as it is: there is nothing to predict", "--plan");
  question.overlap = at_least(options.overlap, 0, "--overlap");
  if (question.overlap > 1) refuse("is between 0 (sending and receiving take turns) and 1", "--overlap");
  question.model = model_of(options);
  question.cluster = cluster_of(options, question.model);
  const PlanAnswer answer = exchange::answer(question);
  const std::string text = options.json ? to_json(question, answer) : to_text(question, answer);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!options.svg.empty()) write_aside(options.svg, to_svg(question, answer));
  return 0;
}

}  // namespace

Action declare_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  const char* const which = "one that shoal train knows, package.module:factory, or a model's file (.json)";
  offer(*app.add_option("model", options->model, which)->required(), nn::models::names());
  flag(app, "-n,--members", options->members, "members of the run");
  flag(app, "--batch", options->batch, "samples of one member in one step (default: 32)");
  switch_on(app, "--whole-batch", options->whole_batch, "--batch is that of all members together");
  flag(app, "--rate", options->rate, "of a member's link, each way (default: 1gbit)");
  flag(app, "--topology", options->topology, "the network, in a file (see shoal topo): its hosts are the members");
  flag(app, "--alpha", options->alpha, "cost of one step of a collective (default: 100us)");
  flag(app, "--add-rate", options->add_rate, "how fast a member adds gradients (default: 8GB/s)");
  flag(app, "--gflops", options->gflops, "how fast a member computes (default: measured here)");
  flag(app, "--samples-per-second", options->samples_a_second, "the same, as what one machine trains alone");
  flag(app, "--sharing", options->sharing, "members that share one machine's cores (default: 1)");
  flag(app, "--measured", options->measured, "links and machines as shoal doctor -n N --json wrote them");
  flag(app, "--plan", options->choice,
       "what to look at closely: auto (default), poseidon, wfbp, p3, ddp:25MB, local:8, diloco:32:4, a way, GLOB=WAY");
  flag(app, "--sample", options->sample, "shape of a factory's sample, as in 3,224,224");
  flag(app, "--overlap", options->overlap, "of sending and receiving in the balance equations, 0 to 1 (default: 1)");
  flag(app, "--svg", options->svg, "draw it into this file");
  switch_on(app, "--json", options->json, "one line for machines");
  return [options](const Words&) { return plan(*options); };
}

}  // namespace shoal::app
