// shoal metric train|predict|evaluate DATA: a map under which samples of one class are near each other, on one member or those of a job.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/learning.h"
#include "shoal/core/error.h"
#include "shoal/data/samples.h"
#include "shoal/learn/linear_model.h"
#include "shoal/learn/metric.h"
#include "shoal/learn/neighbours.h"

namespace shoal::app {
namespace {

constexpr std::size_t kEvaluated = 2000;  // samples of which all pairs are looked at

struct MetricCommandOptions {
  TrainingOptions training;
  std::uint32_t dimensions = 32;
  double apart = 10;
  std::vector<std::string> among;  // files, of evaluate
};

int train_metric(const MetricCommandOptions& options) {
  const TrainingOptions& training = options.training;
  training.check();
  const net::Place place = net::find_place();
  learn::LabelledRows rows = learn::read_labelled_rows(training.source(), place.rank, place.size);
  Course course{.command = "metric", .config = {}, .read = {}, .write_names = {}, .begin = {}};
  course.config = {{"learner", "metric"}, {"dimensions", options.dimensions}, {"apart", options.apart}, {"step", training.step},
                   {"schedule", training.schedule}, {"batch", training.batch}, {"seed", training.seed}};
  course.describe(rows, training);
  course.write_names = [classes = rows.classes](const learn::ModelFolder& folder) { folder.write_names("classes", learn::class_names(classes)); };
  course.begin = [&](net::Transport& transport, const table::TablesOptions& tables) {
    const learn::MetricOptions how{options.dimensions, {training.step, training.schedule == "sqrt"}, options.apart, training.batch, training.seed,
                                   table::consistency_from(training.consistency)};
    return std::make_unique<learn::Metric>(transport, std::move(rows), how, tables);
  };
  return train(course, training, place);
}

int map_samples(const UseOptions& options) {
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

// What distances are worth, those of a map or of the samples as they are.
struct Worth {
  double neighbours, pair_auc;
};

// Who votes, and about whom: rows of another set about all, or those of the first rows about each other. Pairs are those of the first rows.
struct Votes {
  data::SparseRows rows, first, known;
  bool among_themselves() const { return known.size() == 0; }
  std::size_t asked() const { return among_themselves() ? first.size() : rows.size(); }
  std::size_t asking() const { return among_themselves() ? first.size() - 1 : known.size(); }
  Worth count(const learn::Distances& of_pairs, const learn::Distances& to_known) const {
    constexpr std::size_t k = learn::Metric::kNeighbours;
    const std::size_t right =
        among_themselves() ? learn::rightly_voted(of_pairs, first.labels, k) : learn::rightly_voted(to_known, rows.labels, known.labels, k);
    return {static_cast<double>(right) / static_cast<double>(asked()), learn::pair_auc(of_pairs, first.labels)};
  }
};

int evaluate_neighbours(const UseOptions& options, const std::vector<std::string>& among) {
  const auto map = learn::MetricMap::from(learn::ModelFolder(options.model));
  auto [rows, read] = data::read_samples(options.data.paths(), options.data.skip_faulty);
  Votes votes{.rows = std::move(rows), .first = {}, .known = {}};
  votes.first.width = votes.rows.width;
  votes.first.append(votes.rows.slice(0, std::min(votes.rows.size(), kEvaluated)));
  if (!among.empty()) votes.known = data::read_samples({among.begin(), among.end()}, options.data.skip_faulty).first;
  const std::set<double> labels(votes.known.labels.begin(), votes.known.labels.end());
  const auto known = [&](double label) { return labels.contains(label); };
  if (!among.empty() && std::ranges::none_of(votes.rows.labels, known)) {
    throw Error(Code::invalid_argument, "has none of the classes of " + options.data.files.front(), "--among " + among.front(), "name samples of the same kind");
  }
  const auto points = map(votes.rows.all()), of_known = map(votes.known.all());
  const Worth mapped = votes.count(learn::distances(points, points, map.dimensions), learn::distances(points, of_known, map.dimensions));
  const Worth euclidean = votes.count(learn::distances(votes.first, votes.first), learn::distances(votes.rows, votes.known));
  if (options.data.json) {
    const learn::Json figures{{"neighbours", mapped.neighbours}, {"Euclidean neighbours", euclidean.neighbours},
                              {"pair AUC", mapped.pair_auc}, {"Euclidean pair AUC", euclidean.pair_auc},
                              {"rows", votes.asked()}, {"among", votes.asking()}, {"pairs of", votes.first.size()}};
    fmt::print("{}\n", figures.dump());
    return 0;
  }
  fmt::print("{}\n", data::sentence(read));
  fmt::print("of {} samples: the {} nearest of {} vote for the right class {:.4f} (Euclidean {:.4f})\n", votes.asked(), learn::Metric::kNeighbours,
             votes.asking(), mapped.neighbours, euclidean.neighbours);
  fmt::print("of the first {}: pairs of one class are nearer than pairs of two {:.4f} (Euclidean {:.4f})\n", votes.first.size(), mapped.pair_auc,
             euclidean.pair_auc);
  return 0;
}

}  // namespace

Action declare_metric(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<MetricCommandOptions>();
  TrainingOptions& training = options->training;
  training.batch = 100;
  CLI::App* train_verb = app.add_subcommand("train", "learn a map under which samples of one class are near each other");
  declare_data(*train_verb, training.data, kClassFiles);
  flag(*train_verb, "--dimensions", options->dimensions, "of the space that samples are mapped into (default: 32)");
  flag(*train_verb, "--apart", options->apart, "weight of samples of another class that are too near (default: 10)");
  flag(*train_verb, "--step", training.step, "size of a step in the first epoch, in units that fit the data's scale (default: 1)");
  flag(*train_verb, "--batch", training.batch, "samples of all members together between two times that they hear of each other (default: 100)");
  declare_steps(*train_verb, training);
  declare_rows(*train_verb, training);
  declare_training(*train_verb, training);
  const auto evaluated = [options](const UseOptions& use) { return evaluate_neighbours(use, options->among); };
  Action action = declare_use(app, train_verb, kClassFiles, "samples in the space of the map, in LIBSVM's format",
                              "how near samples of one class are to each other", {[options] { return train_metric(*options); }, map_samples, evaluated});
  flag(*app.get_subcommand("evaluate"), "--among", options->among,
       "files whose samples vote, as those it was learnt from (default: the others of the data's first 2,000)");
  return action;
}

}  // namespace shoal::app
