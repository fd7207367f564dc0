// shoal train MODEL [-n 4 [--lab NAME]]: the training itself is Python (python/shoal/train).
#include <array>
#include <string_view>

#include "app/command.h"
#include "app/python.h"
#include "app/run.h"
#include "shoal/nn/models/model.h"

namespace shoal::app {
namespace {

// Flags of shoal.train, which checks their values and knows their defaults. Passed on where they are set.
struct Passed {
  const char* name;
  const char* help;
};
constexpr std::array<Passed, 12> passed_on{{
    {"--data", "where the model's data set is, or synthetic"},
    {"--epochs", "passes over the data"},
    {"--batch", "samples of one member in one step"},
    {"--lr", "learning rate (default: 0.001 of Adam, 0.05 of SGD)"},
    {"--sgd", "momentum: train by SGD with it instead of Adam; 0 for a plan that gathers with momentum itself, as topk:0.01:0.9"},
    {"--seed", "of the parameters and the order of samples"},
    {"--steps", "end after so many steps"},
    {"--checkpoint", "folder for the state of the training, saved while it goes on"},
    {"--every", "steps from one checkpoint to the next (default: 100)"},
    {"--plan", plan_help},
    {"--consistency", "with --plan ps: how stale parameters may be: bsp, ssp:3, essp:3, cap:3, vap:0.1, async (a name that is none lists all)"},
    {"--tensorboard", "folder for TensorBoard's curves, written by rank 0"},
}};

struct TrainOptions {
  RunOptions run;
  std::string model;
  std::array<std::string, passed_on.size()> values;
  bool resume = false, json = false;
};

int train(const TrainOptions& options, bool alone) {
  nn::models::describe(options.model);  // a model that does not exist is refused before Python starts
  Words command = python_module("shoal.train");
  command.push_back(options.model);
  for (std::size_t i = 0; i < passed_on.size(); ++i) {
    if (options.values[i].empty()) continue;
    const bool plan = passed_on[i].name == std::string_view("--plan");
    command.insert(command.end(), {passed_on[i].name, plan ? checked_plan(options.values[i]) : options.values[i]});
  }
  if (options.resume) command.push_back("--resume");
  if (options.json) command.push_back("--json");
  if (alone) become(command, {}, {});
  RunOptions run = options.run;
  if (run.name.empty()) run.name = options.model;
  return run_members(run, command, options.json ? Console::Show::rank_0 : Console::Show::every_rank);
}

}  // namespace

Action declare_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  offer(*app.add_option("model", options->model, "one of the zoo (docs/models.md)")->required(), nn::models::names());
  declare_members(app, options->run);
  declare_losses(app, options->run);
  declare_python(app, options->run);
  for (std::size_t i = 0; i < passed_on.size(); ++i) {
    flag(app, passed_on[i].name, options->values[i], passed_on[i].help);
  }
  switch_on(app, "--resume", options->resume, "go on from the newest checkpoint, if there is one");
  switch_on(app, "--json", options->json, "lines for machines");
  return [&app, options](const Words&) { return train(*options, runs_alone(app, options->run)); };
}

}  // namespace shoal::app
