// shoal cluster-points train|predict|evaluate DATA: k-means, on one member or those of a job.
#include <fmt/format.h>

#include <cmath>

#include "app/learning.h"
#include "shoal/core/error.h"
#include "shoal/data/samples.h"
#include "shoal/learn/k_means.h"

namespace shoal::app {
namespace {


struct ClusterOptions {
  TrainingOptions training;
  std::uint32_t clusters = 10;
};

int train_centers(const ClusterOptions& options) {
  const TrainingOptions& training = options.training;
  training.check();
  const net::Place place = net::find_place();
  learn::LabelledRows rows = learn::read_labelled_rows(training.source(), place.rank, place.size, learn::Labels::unused);
  Course course{.command = "cluster-points", .config = {}, .read = {}, .write_names = [](const learn::ModelFolder&) {}, .begin = {}};
  course.config = {{"learner", "cluster-points"}, {"clusters", options.clusters}, {"seed", training.seed}};
  course.describe(rows, training);
  course.begin = [&](net::Transport& transport, const table::TablesOptions& tables) {
    return std::make_unique<learn::KMeans>(transport, std::move(rows), learn::KMeansOptions{options.clusters, training.seed}, tables);
  };
  return train(course, training, place);
}

int predict_clusters(const UseOptions& options) {
  const learn::Centers centers{learn::ModelFolder(options.model)};
  const auto rows = data::read_samples(options.data.paths(), options.data.skip_faulty).first;
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [cluster, distance] = centers.nearest(rows[i]);
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{:.6g}\n", i + 1, cluster + 1, std::sqrt(distance));
  }
  deliver(fmt::to_string(text), options.output);
  return 0;
}

int evaluate_clusters(const UseOptions& options) {
  const learn::Centers centers{learn::ModelFolder(options.model)};
  const auto [rows, read] = data::read_samples(options.data.paths(), options.data.skip_faulty);
  std::vector<std::uint64_t> counts(centers.clusters());
  double distances = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [cluster, distance] = centers.nearest(rows[i]);
    distances += distance;
    ++counts[cluster];
  }
  const double mean = distances / static_cast<double>(rows.size());
  if (options.data.json) {
    fmt::print("{}\n", learn::Json{{"mean squared distance", mean}, {"rows", rows.size()}, {"in clusters", counts}}.dump());
    return 0;
  }
  fmt::print("{}\n", data::sentence(read));
  fmt::print("mean squared distance {:.6g}; the clusters have {} samples\n", mean, fmt::join(counts, ", "));
  return 0;
}

}  // namespace

Action declare_cluster_points(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<ClusterOptions>();
  options->training.epochs = 100;
  CLI::App* train_verb = app.add_subcommand("train", "find centers of clusters");
  declare_data(*train_verb, options->training.data, kSampleFiles);
  flag(*train_verb, "--clusters", options->clusters, "how many (default: 10)");
  declare_rows(*train_verb, options->training);
  declare_training(*train_verb, options->training);
  return declare_use(app, train_verb, kSampleFiles, "number, cluster and distance of each sample, as TSV", "how far samples are from their centers",
                     {[options] { return train_centers(*options); }, predict_clusters, evaluate_clusters});
}

}  // namespace shoal::app
