// shoal factorize train|predict|evaluate DATA: matrix factorization of ratings, on one member or those of a job.
#include <fmt/format.h>

#include <cmath>

#include "app/learning.h"
#include "shoal/core/error.h"
#include "shoal/learn/factor_model.h"
#include "shoal/learn/whole_factors.h"

namespace shoal::app {
namespace {

constexpr data::Nouns kNouns{"ratings", "users", "items"};
constexpr const char* kRatingFiles = "user, item, rating: CSV, TSV or the like, packed or not; or a matrix in MatrixMarket's format";

struct FactorizeOptions {
  TrainingOptions training;
  std::uint64_t factors = 32;
  bool biases = false, non_negative = false;
  std::string missing = "unknown";
  const CLI::App* verb = nullptr;  // whose flags these are; it outlives them
  bool given(const char* flag) const { return verb->get_option(flag)->count() > 0; }
};

// A whole matrix is learnt without steps, and by all that is given, unless somebody asks for less: a number that is held out is 0 there.
void fit_to_whole(FactorizeOptions& options) {
  for (const char* flag : {"--step", "--schedule", "--batch"}) {
    if (options.given(flag)) refuse("a whole matrix is learnt without steps", flag, "leave it out, or --missing zero");
  }
  if (!options.given("--test-share")) options.training.test_share = 0;
}

int train_factors(FactorizeOptions& options) {
  const learn::Missing missing = learn::missing_from(options.missing);
  if (missing == learn::Missing::zero) fit_to_whole(options);
  options.training.check();
  const net::Place place = net::find_place();
  const auto& training = options.training;
  learn::FactorizationOptions how;
  how.factors = options.factors;
  how.step = {training.step, training.schedule == "sqrt"};
  how.l2 = training.l2;
  how.batch = training.batch;
  how.seed = training.seed;
  how.biases = options.biases;
  how.non_negative = options.non_negative;
  how.consistency = table::consistency_from(training.consistency);
  how.missing = missing;
  learn::Ratings ratings = learn::read_ratings(training.source(), place.rank, place.size);
  Course course{.command = "factorize", .config = {}, .read = {}, .write_names = {}, .begin = {}};
  course.config = {{"learner", "factorize"}, {"factors", how.factors}, {"biases", how.biases}, {"non_negative", how.non_negative},
                   {"step", training.step}, {"schedule", training.schedule}, {"l2", how.l2}, {"batch", how.batch}, {"seed", how.seed},
                   {"test_share", training.test.empty() ? training.test_share : 0}, {"users", ratings.users}, {"items", ratings.items},
                   {"ratings", ratings.count}, {"on_disk", training.on_disk}, {"held_out", ratings.held_out}, {"mean", learn::mean_of(ratings, missing)}, {"data", fmt::format("{:016x}", ratings.digest)}};
  if (missing == learn::Missing::zero) {
    course.config["missing"] = options.missing;  // a model without it was learnt from ratings alone
    for (const char* step : {"step", "schedule", "batch"}) course.config.erase(step);
  }
  if (!options.training.start.empty()) course.config["start"] = options.training.start;
  for (const auto& read : ratings.read) course.read.push_back(data::sentence(read, kNouns));
  course.write_names = [users = ratings.user_names, items = ratings.item_names](const learn::ModelFolder& folder) {
    if (users.size() > 0) folder.write_names("users", users);
    if (items.size() > 0) folder.write_names("items", items);
  };
  course.begin = [&](net::Transport& transport, const table::TablesOptions& tables) {
    return learn::factor_learner(transport, std::move(ratings), how, tables);
  };
  return train(course, training, place);
}

void say_unknown(std::size_t unknown, std::size_t all) {
  if (unknown > 0) fmt::print(stderr, "{} of {} have a user or an item that the model does not know: the mean stands for them\n", unknown, all);
}

std::string name_or_number(const data::Names& names, std::uint32_t number) {
  return names.size() > 0 ? std::string(names[number]) : std::to_string(number + 1);
}

int predict_ratings(const UseOptions& options) {
  const learn::FactorModel model{learn::ModelFolder(options.model)};
  const auto triples = learn::read_all_ratings(options.data.paths(), options.data.skip_faulty).first;
  const auto predictions = model.predict(triples);
  fmt::memory_buffer text;
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    unknown += predictions[i].known ? 0 : 1;
    fmt::format_to(std::back_inserter(text), "{}\t{}\t{:.6g}\n", name_or_number(triples.row_names, triples.rows[i]),
                   name_or_number(triples.column_names, triples.columns[i]), predictions[i].rating);
  }
  say_unknown(unknown, predictions.size());
  deliver(fmt::to_string(text), options.output);
  return 0;
}

int evaluate_ratings(const UseOptions& options) {
  const learn::FactorModel model{learn::ModelFolder(options.model)};
  const auto [triples, read] = learn::read_all_ratings(options.data.paths(), options.data.skip_faulty);
  const auto predictions = model.predict(triples);
  double squares = 0, distances = 0;
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double error = triples.values[i] - predictions[i].rating;
    squares += error * error;
    distances += std::abs(error);
    unknown += predictions[i].known ? 0 : 1;
  }
  const auto count = static_cast<double>(predictions.size());
  const double rmse = std::sqrt(squares / count), mae = distances / count;
  if (options.data.json) {
    fmt::print("{}\n", learn::Json{{"RMSE", rmse}, {"MAE", mae}, {"ratings", predictions.size()}, {"unknown", unknown}}.dump());
    return 0;
  }
  fmt::print("{}\n", data::sentence(read, kNouns));
  say_unknown(unknown, predictions.size());
  fmt::print("RMSE {:.4f}, mean absolute error {:.4f}\n", rmse, mae);
  return 0;
}

}  // namespace

Action declare_factorize(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<FactorizeOptions>();
  options->training.step = 0.1;
  options->training.l2 = 0.08;
  options->training.batch = 1000;
  CLI::App* train_verb = app.add_subcommand("train", "learn the factors of ratings");
  declare_data(*train_verb, options->training.data, kRatingFiles);
  flag(*train_verb, "--factors", options->factors, "of a user and of an item: the rank (default: 32)");
  flag(*train_verb, "--step", options->training.step, "size of a step in the first epoch (default: 0.1)");
  flag(*train_verb, "--l2", options->training.l2, "weight of the squared factors (default: 0.08)");
  flag(*train_verb, "--batch", options->training.batch, "ratings of one member between two times that it hears of others (default: 1000)");
  switch_on(*train_verb, "--biases", options->biases, "each user and each item has a number that it adds to its ratings");
  switch_on(*train_verb, "--non-negative", options->non_negative, "factors are not below zero (NMF)");
  flag(*train_verb, "--missing", options->missing, "what a rating is that the data does not give: unknown (default), or zero, as of counts: non-negative factors of the whole matrix, without steps");
  options->verb = train_verb;
  declare_steps(*train_verb, options->training);
  declare_rows(*train_verb, options->training);
  declare_training(*train_verb, options->training);
  return declare_use(app, train_verb, kRatingFiles, "ratings of pairs of user and item, as TSV", "how far the model is from known ratings",
                     {[options] { return train_factors(*options); }, predict_ratings, evaluate_ratings});
}

}  // namespace shoal::app
