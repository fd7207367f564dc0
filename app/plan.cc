// shoal plan MODEL -n N: what an iteration would take by each way, before anything runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/command.h"
#include "app/plan_report.h"
#include "app/python.h"
#include "app/run.h"
#include "app/spawn.h"
#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/read_text.h"
#include "shoal/nn/models/known_model.h"
#include "shoal/nn/models/model.h"
#include "shoal/topo/import.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Nanoseconds kPatience = 120s;            // a factory imports PyTorch, and whatever else it needs
constexpr std::size_t kManyLayers = 2000;          // whose plan takes seconds
constexpr std::size_t kLargestFile = 256 << 20;
constexpr double kBackwardAndForward = 3;          // an iteration's operations, in forward passes

struct PlanOptions {
  exchange::Asked asked;
  std::string model, sample, rate, alpha, add_rate, measured, topology, svg;  // empty: not said
  std::optional<int> members;
  std::optional<double> gflops, samples_a_second;
  int sharing = 1;
  bool json = false;

  bool has_factory() const { return !model.ends_with(".json") && model.find(':') != std::string::npos; }
};

// What can be told before anything is read. Two flags that say the same, each in its own way, are refused: one of them would count for nothing.
void check(const PlanOptions& options) {
  const auto refuse_beside = [](const std::string& said, const char* flag, const std::string& why) {
    if (!said.empty()) refuse(why, flag);
  };
  if (!options.measured.empty()) {
    const std::string why = "the links are those of " + options.measured;
    refuse_beside(options.topology, "--topology", why);
    refuse_beside(options.rate, "--rate", why);
    refuse_beside(options.alpha, "--alpha", why);
    refuse_beside(options.add_rate, "--add-rate", why);
  }
  if (!options.topology.empty()) refuse_beside(options.rate, "--rate", "the rates are those of " + options.topology);
  if (!options.has_factory()) refuse_beside(options.sample, "--sample", "is of a factory (package.module:factory), and " + options.model + " is none");
  const auto& samples = options.samples_a_second;
  if (samples && options.gflops) refuse("how fast a member computes is what --gflops says", "--samples-per-second");
  if (samples) exchange::within(*samples, 1e-6, 1e12, "--samples-per-second");
  if (options.sharing < 1 || options.sharing > most_members) refuse(fmt::format("{} members cannot share a machine", options.sharing), "--sharing");
}

// On a terminal, before what may take longer than people wait without a word.
void say_that(const std::string& it_works) {
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "shoal plan: {}\n", it_works);
}

// A factory's model is traced by the Python beside this program, which has PyTorch.
exchange::Model traced(const PlanOptions& options) {
  auto command = python_module("shoal.describe");
  command.push_back(options.model);
  if (!options.sample.empty()) command.insert(command.end(), {"--sample", options.sample});
  say_that(fmt::format("a Python imports and describes {}, at most {} s", options.model, kPatience / 1s));
  const ToolResult result = run_tool(command, kPatience);
  if (result.status != 0) {
    std::string line = last_words(result);
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
  if (options.has_factory()) return traced(options);
  if (options.model.ends_with(".json")) return exchange::model_from_json(read_whole_text(options.model, kLargestFile), options.model);
  const auto& known = nn::models::names();
  if (std::find(known.begin(), known.end(), options.model) == known.end()) {
    refuse("there is no such model", options.model, fmt::format("one of {}; package.module:factory; or a model's file, .json", fmt::join(known, ", ")));
  }
  return nn::models::known_model(options.model);
}

// A cluster as `shoal doctor -n N --json` measured it.
struct Measured {
  exchange::Machine machine;  // as fast as the slowest that has a PyTorch to measure; 0: none has
  int members = 0;
};

Measured read_measured(const std::string& file) {
  try {
    const auto told = nlohmann::json::parse(read_whole_text(file, kLargestFile));
    const auto& link = told.at("link");
    Measured measured;
    measured.machine.link = {link.at("alpha_s"), link.at("rate"), link.at("add_rate"), link.at("fan_in"), link.at("fan_in_alpha_s"), link.value("saves", 0.0)};
    std::vector<double> flops;
    for (const auto& member : told.at("members")) {
      if (member.at("flops").is_number()) flops.push_back(member.at("flops"));
    }
    if (!flops.empty()) measured.machine.flops = *std::min_element(flops.begin(), flops.end());
    measured.members = static_cast<int>(told.at("members").size());
    return measured;
  } catch (const nlohmann::json::exception& error) {
    refuse("is not what doctor measured", file, "shoal doctor -n 4 --json > " + file);
  }
}

double measured_here() {
  say_that("measures how fast this machine computes (--gflops says it)");
  const ToolResult result = run_tool(python_module("shoal.gemm_rate"), kPatience);
  if (result.status != 0) refuse(last_words(result), "shoal plan", "--gflops says how fast a member computes");
  return nlohmann::json::parse(result.out).at("flops");
}

// Said, or else as many as were measured. 0: the hosts of the topology.
std::uint32_t members_of(const PlanOptions& options, const std::optional<Measured>& measured) {
  if (!options.members && !options.topology.empty()) return 0;
  const bool of_file = !options.members && measured;
  if (!options.members && !measured) refuse("of how many members is not said", "-n", "shoal plan " + options.model + " -n 4");
  const int members = of_file ? measured->members : options.members.value_or(0);
  if (members < 1 || members > most_members) {
    refuse(fmt::format("a run has 1 to {} members, not {}", most_members, members), of_file ? options.measured : "-n");
  }
  return static_cast<std::uint32_t>(members);
}

exchange::Asked asked_of(const PlanOptions& options) {
  exchange::Asked asked = options.asked;
  std::optional<Measured> measured;
  if (!options.measured.empty()) measured = read_measured(options.measured);
  if (measured) asked.measured = measured->machine;
  asked.members = members_of(options, measured);
  if (!options.topology.empty()) {
    auto topology = topo::import_topology(fs::path(options.topology)).topology;
    asked.network = exchange::Asked::Network{std::move(topology), options.topology, collective::ProgramCache::of_user()};
  }
  if (!options.rate.empty()) asked.rate = options.rate;
  if (!options.alpha.empty()) asked.alpha = options.alpha;
  if (!options.add_rate.empty()) asked.add_rate = options.add_rate;
  if (options.gflops) asked.flops = 1e9 * *options.gflops;
  return asked;
}

int plan(const PlanOptions& options) {
  check(options);
  PlanQuestion question = exchange::question_of(asked_of(options), "--");
  question.model = model_of(options);
  exchange::Machine& machine = question.cluster.machine;
  if (options.samples_a_second) machine.flops = kBackwardAndForward * question.model.forward_flops() * *options.samples_a_second;
  if (machine.flops <= 0) machine.flops = measured_here();
  machine.flops /= options.sharing;
  machine.link.add_rate /= options.sharing;
  if (question.model.layers.size() > kManyLayers) say_that(fmt::format("plans {} layers", question.model.layers.size()));
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
  flag(app, "--batch", options->asked.batch, "samples of one member in one step (default: 32)");
  switch_on(app, "--whole-batch", options->asked.whole_batch, "--batch is that of all members together");
  flag(app, "--rate", options->rate, "of a member's link, each way (default: 1gbit)");
  flag(app, "--topology", options->topology, "the network, in a file (see shoal topo): its hosts are the members");
  flag(app, "--alpha", options->alpha, "cost of one step of a collective (default: 100us)");
  flag(app, "--add-rate", options->add_rate, "how fast a member adds gradients (default: 8GB/s)");
  flag(app, "--gflops", options->gflops, "how fast a member computes (default: measured here)");
  flag(app, "--samples-per-second", options->samples_a_second, "the same, as what one machine trains alone");
  flag(app, "--sharing", options->sharing, "members that share one machine's cores (default: 1)");
  flag(app, "--measured", options->measured, "links and machines as shoal doctor -n N --json wrote them");
  flag(app, "--plan", options->asked.choice,
       "what to look at closely: auto (default), poseidon, wfbp, p3, ddp:25MB, local:8, diloco:32:4, a way, GLOB=WAY");
  flag(app, "--sample", options->sample, "shape of a factory's sample, as in 3,224,224");
  flag(app, "--overlap", options->asked.overlap, "of sending and receiving in the balance equations, 0 to 1 (default: 1)");
  flag(app, "--svg", options->svg, "draw it into this file");
  switch_on(app, "--json", options->json, "one line for machines");
  return [options](const Words&) { return plan(*options); };
}

}  // namespace shoal::app
