// shoal train MODEL [-n 4 [--lab NAME]]: the training itself is Python (python/shoal/train).
#include <array>
#include <cstdlib>
#include <string_view>

#include "app/command.h"
#include "app/python.h"
#include "app/run.h"
#include "app/spawn.h"
#include "shoal/core/error.h"
#include "shoal/nn/models/model.h"

namespace shoal::app {
namespace {

// Flags of shoal.train (flags.py), which checks their values and knows their defaults. Passed on where they are set.
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

// Runs the one file of shoal.train that needs no PyTorch, so that none is imported to say what is wrong with a flag.
constexpr const char* kReadFlags =
    "import importlib.util, os, runpy; shoal = os.path.dirname(importlib.util.find_spec('shoal').origin); "
    "runpy.run_path(os.path.join(shoal, 'train', 'flags.py'), run_name='__main__')";

// Who reads the flags knows what they may be. Asked before members start, it says so once. `command`: python -m shoal.train FLAGS.
void check_flags(const Words& command) {
  Words words{command[0], "-c", kReadFlags};
  words.insert(words.end(), command.begin() + 3, command.end());
  const ToolResult read = run_tool(words);
  if (read.status == exit_code(Code::invalid_argument)) throw Error(Code::invalid_argument, last_words(read));
}

int train(const TrainOptions& options, bool alone) {
  nn::models::describe(options.model);  // a model that does not exist is refused before Python starts
  Words command = python_module("shoal.train");
  command.push_back(options.model);
  bool keeps = false;
  for (std::size_t i = 0; i < passed_on.size(); ++i) {
    if (options.values[i].empty()) continue;
    const std::string_view name = passed_on[i].name;
    command.insert(command.end(), {passed_on[i].name, name == "--plan" ? checked_plan(options.values[i]) : options.values[i]});
    keeps = keeps || name == "--checkpoint";
  }
  // The variable may be that of a run that begins again (run.cc): then it asks for no checkpoints where there are none.
  if (options.resume && (keeps || !std::getenv("SHOAL_RESUME"))) command.push_back("--resume");
  if (options.json) command.push_back("--json");
  if (alone) become(command, {}, {});
  check_flags(command);
  RunOptions run = options.run;
  if (run.name.empty()) run.name = options.model;
  return run_members(run, command, options.json ? Console::Show::one_speaks : Console::Show::every_rank);
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
