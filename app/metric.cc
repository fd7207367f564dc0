// shoal metric train|predict|evaluate DATA: a map under which samples of one class are near each other, on one member or those of a job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/learning.h"
#include "shoal/core/error.h"
#include "shoal/data/samples.h"
#include "shoal/learn/linear_model.h"
#include "shoal/learn/metric.h"

namespace shoal::app {
namespace {

constexpr const char* kData = "samples in LIBSVM's format or IDX, packed or not; a label is a class";
constexpr std::size_t kEvaluated = 2000;  // samples: all pairs of them are looked at

struct MetricCommandOptions {
  TrainingOptions training;
  std::uint32_t dimensions = 32;
  double apart = 1;
};

int train_metric(const MetricCommandOptions& options) {
  const TrainingOptions& training = options.training;
  training.check();
  const net::Place place = net::find_place();
  learn::LabelledRows rows = learn::read_labelled_rows(training.source(), place.rank, place.size);
  Course course{.command = "metric", .config = {}, .read = {}, .write_names = {}, .begin = {}};
  course.config = {{"learner", "metric"}, {"dimensions", options.dimensions}, {"apart", options.apart}, {"step", training.step}, {"schedule", training.schedule},
                   {"batch", training.batch}, {"seed", training.seed}};
  course.describe(rows, training);
  course.write_names = [classes = rows.classes](const learn::ModelFolder& folder) { folder.write_names("classes", learn::class_names(classes)); };
  course.begin = [&](net::Transport& transport) {
    const learn::MetricOptions how{options.dimensions, {training.step, training.schedule == "sqrt"}, options.apart, training.batch, training.seed,
                                   table::consistency_from(training.consistency)};
    return std::make_unique<learn::Metric>(transport, std::move(rows), how);
  };
  return train(course, training, place);
}

int predict(const UseOptions& options) {
  const auto map = learn::MetricMap::from(learn::ModelFolder(options.model));
  const auto rows = data::read_samples(options.data.paths(), options.data.skip_faulty).first;
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}", rows[i].label);
    const auto point = map(rows[i]);
    for (std::size_t k = 0; k < point.size(); ++k) fmt::format_to(std::back_inserter(text), " {}:{:.6g}", k + 1, point[k]);
    text.push_back('\n');
  }
  deliver(fmt::to_string(text), options.output);
  return 0;
}

int evaluate(const UseOptions& options) {
  const auto map = learn::MetricMap::from(learn::ModelFolder(options.model));
  const auto [rows, read] = data::read_samples(options.data.paths(), options.data.skip_faulty);
  const std::size_t looked_at = std::min(rows.size(), kEvaluated);
  learn::Neighbourhood mapped;
  for (std::size_t i = 0; i < looked_at; ++i) mapped.add(map(rows[i]), rows[i].label);
  const double neighbours = mapped.leave_one_out(learn::Metric::kNeighbours), auc = mapped.pair_auc();
  if (options.data.json) {
    fmt::print("{}\n", learn::Json{{"neighbours", neighbours}, {"pair AUC", auc}, {"rows", looked_at}}.dump());
    return 0;
  }
  fmt::print("{}\n", data::sentence(read));
  fmt::print("of the first {}: {} nearest others vote for the right class {:.4f}, pair AUC {:.4f}\n", looked_at, learn::Metric::kNeighbours, neighbours, auc);
  return 0;
}

}  // namespace

Action declare_metric(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<MetricCommandOptions>();
  TrainingOptions& training = options->training;
  training.batch = 100;
  CLI::App* train_verb = app.add_subcommand("train", "learn a map under which samples of one class are near each other");
  declare_data(*train_verb, training.data, kData);
  flag(*train_verb, "--dimensions", options->dimensions, "of the space that samples are mapped into (default: 32)");
  flag(*train_verb, "--apart", options->apart, "weight of pairs of two classes that are too near (default: 1)");
  flag(*train_verb, "--step", training.step, "size of a step in the first epoch, in units that fit the data's scale (default: 1)");
  flag(*train_verb, "--batch", training.batch, "samples of all members together between two times that they hear of each other (default: 100)");
  declare_steps(*train_verb, training);
  declare_rows(*train_verb, training);
  declare_training(*train_verb, training);
  return declare_use(app, train_verb, kData, "samples in the space of the map, in LIBSVM's format", "how near samples of one class are to each other",
                     {[options] { return train_metric(*options); }, predict, evaluate});
}

}  // namespace shoal::app
