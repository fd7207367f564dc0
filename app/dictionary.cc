// shoal dictionary train|predict|evaluate DATA: atoms of which few make up a sample, on one member or those of a job.
#include <fmt/format.h>

#include <cmath>

#include "app/learning.h"
#include "shoal/core/error.h"
#include "shoal/data/samples.h"
#include "shoal/learn/sparse_coding.h"

namespace shoal::app {
namespace {


struct DictionaryOptions {
  TrainingOptions training;
  learn::DictionaryForm form;
};

int train_dictionary(const DictionaryOptions& options) {
  const TrainingOptions& training = options.training;
  training.check();
  const net::Place place = net::find_place();
  learn::LabelledRows rows = learn::read_labelled_rows(training.source(), place.rank, place.size, learn::Labels::unused);
  Course course{.command = "dictionary", .config = {}, .read = {}, .write_names = [](const learn::ModelFolder&) {}, .begin = {}};
  course.config = {{"learner", "dictionary"}, {"atoms", options.form.atoms}, {"l1", options.form.l1}, {"non_negative", options.form.non_negative},
                   {"batch", training.batch}, {"seed", training.seed}};
  course.describe(rows, training);
  course.begin = [&](net::Transport& transport, const table::TablesOptions& tables) {
    return std::make_unique<learn::SparseCoding>(transport, std::move(rows), learn::SparseCodingOptions{options.form, training.batch, training.seed}, tables);
  };
  return train(course, training, place);
}

int predict_codes(const UseOptions& options) {
  const learn::Dictionary dictionary{learn::ModelFolder(options.model)};
  const auto rows = data::read_samples(options.data.paths(), options.data.skip_faulty).first;
  fmt::memory_buffer text;
  std::vector<float> code(dictionary.form().atoms);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::fill(code.begin(), code.end(), 0.0f);
    dictionary.code(rows[i], code);
    fmt::format_to(std::back_inserter(text), "{}", rows[i].label);
    for (std::size_t k = 0; k < code.size(); ++k) {
      if (code[k] != 0) fmt::format_to(std::back_inserter(text), " {}:{:.6g}", k + 1, code[k]);
    }
    text.push_back('\n');
  }
  deliver(fmt::to_string(text), options.output);
  return 0;
}

int evaluate_codes(const UseOptions& options) {
  const learn::Dictionary dictionary{learn::ModelFolder(options.model)};
  const auto [rows, read] = data::read_samples(options.data.paths(), options.data.skip_faulty);
  double objective = 0, squares = 0, used = 0;
  std::vector<float> code(dictionary.form().atoms);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::fill(code.begin(), code.end(), 0.0f);
    const auto coded = dictionary.code(rows[i], code);
    objective += coded.objective;
    squares += coded.squared_error;
    used += static_cast<double>(code.size()) - static_cast<double>(std::count(code.begin(), code.end(), 0.0f));
  }
  const auto count = static_cast<double>(rows.size());
  if (options.data.json) {
    fmt::print("{}\n", learn::Json{{"objective", objective / count}, {"squared error", squares / count}, {"atoms a sample", used / count}, {"rows", rows.size()}}.dump());
    return 0;
  }
  fmt::print("{}\n", data::sentence(read));
  fmt::print("objective {:.6g}, squared error {:.6g}, {:.1f} atoms a sample\n", objective / count, squares / count, used / count);
  return 0;
}

}  // namespace

Action declare_dictionary(CLI::App& app) {
  app.require_subcommand(1);
  auto options = std::make_shared<DictionaryOptions>();
  options->training.batch = 500;
  CLI::App* train_verb = app.add_subcommand("train", "learn atoms of which few make up a sample");
  declare_data(*train_verb, options->training.data, kSampleFiles);
  flag(*train_verb, "--atoms", options->form.atoms, "how many (default: 64)");
  flag(*train_verb, "--l1", options->form.l1, "weight of the codes' absolute values, in units of the data: the larger, the fewer atoms a sample has (default: 1)");
  flag(*train_verb, "--batch", options->training.batch, "samples of all members together between two times that the atoms are improved (default: 500)");
  switch_on(*train_verb, "--non-negative", options->form.non_negative, "neither atoms nor codes are below zero");
  declare_rows(*train_verb, options->training);
  declare_training(*train_verb, options->training);
  return declare_use(app, train_verb, kSampleFiles, "the code of each sample, in LIBSVM's format", "how well few atoms make up the samples",
                     {[options] { return train_dictionary(*options); }, predict_codes, evaluate_codes});
}

}  // namespace shoal::app
