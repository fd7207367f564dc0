// shoal linear train|predict|evaluate DATA: multiclass logistic regression over sparse rows, on one member or those of a job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/learning.h"
#include "shoal/core/error.h"
#include "shoal/data/samples.h"
#include "shoal/learn/linear.h"
#include "shoal/learn/linear_model.h"
#include "shoal/learn/sdca.h"

namespace shoal::app {
namespace {


struct LinearOptions {
  TrainingOptions training;
  std::string solver = "sgd", encode = "none";
  double gap = 1e-4;
};

int train_linear(const LinearOptions& options) {
  const TrainingOptions& training = options.training;
  training.check();
  const bool dual = options.solver == "sdca";
  if (!dual && options.solver != "sgd") throw Error(Code::invalid_argument, "\"" + options.solver + "\" is none", "--solver", "sgd or sdca");
  if (dual && training.consistency != "bsp") {
    throw Error(Code::invalid_argument, "sdca's steps are safe under bsp alone", "--consistency", "leave it out, or take --solver sgd");
  }
  const learn::Sharing sharing = learn::sharing_from(training.sharing);
  const net::Place place = net::find_place();
  learn::LabelledRows rows = learn::read_labelled_rows(training.source(), place.rank, place.size);
  Course course{.command = "linear", .config = {}, .read = {}, .write_names = {}, .begin = {}};
  course.config = {{"learner", "linear"}, {"solver", options.solver}, {"l2", training.l2}, {"batch", training.batch}, {"seed", training.seed}};
  if (dual) {
    course.begin = [&](net::Transport& transport, const table::TablesOptions& tables) {
      return std::make_unique<learn::Sdca>(
          transport, std::move(rows), learn::SdcaOptions{training.l2, options.gap, training.batch, training.seed, sharing}, tables);
    };
  } else {
    course.config.update({{"step", training.step}, {"schedule", training.schedule}});
    const table::Encoding encoding = table::encoding_from(options.encode);
    if (encoding != table::Encoding::none) course.config["encode"] = options.encode;
    course.begin = [&, encoding](net::Transport& transport, const table::TablesOptions& tables) {
      const learn::LinearOptions how{{training.step, training.schedule == "sqrt"},  training.l2, training.batch, training.seed,
                                     table::consistency_from(training.consistency), sharing,     encoding};
      return std::make_unique<learn::Linear>(transport, std::move(rows), how, tables);
    };
  }
  course.describe(rows, training);
  course.write_names = [classes = rows.classes](const learn::ModelFolder& folder) { folder.write_names("classes", learn::class_names(classes)); };
  return train(course, training, place);
}

int predict_classes(const UseOptions& options) {
  const learn::LinearModel model{learn::ModelFolder(options.model)};
  const auto rows = data::read_samples(options.data.paths(), options.data.skip_faulty).first;
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto probabilities = model.probabilities(rows[i]);
    const auto likeliest = std::max_element(probabilities.begin(), probabilities.end());
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{:.6g}\n", i + 1,
                   model.class_name(static_cast<std::uint32_t>(likeliest - probabilities.begin())), *likeliest);
  }
  deliver(fmt::to_string(text), options.output);
  return 0;
}

int evaluate_classes(const UseOptions& options) {
  const learn::LinearModel model{learn::ModelFolder(options.model)};
  const auto [rows, read] = data::read_samples(options.data.paths(), options.data.skip_faulty);
  double loss = 0;
  std::size_t correct = 0, unknown = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto label = model.class_of(rows[i].label);
    const auto probabilities = model.probabilities(rows[i]);
    if (!label) {
      ++unknown;  // never right; it has no probability that could be a loss
      continue;
    }
    loss -= std::log(std::max(probabilities[*label], 1e-300));
    correct += std::max_element(probabilities.begin(), probabilities.end()) == probabilities.begin() + *label ? 1 : 0;
  }
  const double accuracy = static_cast<double>(correct) / static_cast<double>(rows.size());
  const double log_loss = unknown < rows.size() ? loss / static_cast<double>(rows.size() - unknown) : 0;
  if (options.data.json) {
    fmt::print("{}\n", learn::Json{{"accuracy", accuracy}, {"log loss", log_loss}, {"rows", rows.size()}, {"unknown", unknown}}.dump());
    return 0;
  }
  fmt::print("{}\n", data::sentence(read));
  if (unknown > 0)
    fmt::print(stderr, "{} of {} have a label that the model does not know: never right, and not in the log loss\n", unknown,
               rows.size());
  fmt::print("accuracy {:.4f}, log loss {:.4f}\n", accuracy, log_loss);
  return 0;
}

}  // namespace

Action declare_linear(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<LinearOptions>();
  TrainingOptions& training = options->training;
  training.step = 2;
  training.l2 = 1e-5;
  training.batch = 100;
  CLI::App* train_verb = app.add_subcommand("train", "learn to tell classes apart");
  declare_data(*train_verb, training.data, kClassFiles);
  flag(*train_verb, "--solver", options->solver, "sgd (default), or sdca: no step size, and a duality gap that says how far the optimum is");
  flag(*train_verb, "--gap", options->gap, "sdca has learnt enough when the duality gap is no larger (default: 1e-4)");
  flag(*train_verb, "--step", training.step, "of sgd: size of a step in the first epoch, in units that fit the data's scale (default: 2)");
  flag(*train_verb, "--encode", options->encode, "of sgd: how weights and what is added to them travel: none (default), bf16 or int8");
  flag(*train_verb, "--l2", training.l2, "weight of the squared weights (default: 1e-5)");
  flag(*train_verb, "--sharing", training.sharing,
       "of weights: rows (of a table), factors (all members have all of them), factors:halton, factors:fitted:2, or auto, what "
       "is quicker here (default)");
  flag(*train_verb, "--batch", training.batch, "rows of all members together between two times that they hear of each other (default: 100)");
  declare_steps(*train_verb, training);
  declare_rows(*train_verb, training);
  declare_training(*train_verb, training);
  return declare_use(app, train_verb, kClassFiles, "number, class and its probability of each sample, as TSV", "how often the model is right",
                     {[options] { return train_linear(*options); }, predict_classes, evaluate_classes});
}

}  // namespace shoal::app
