// shoal topics: what texts are about. Each verb has a file of its own.
#include "app/topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "shoal/learn/topic/model_files.h"
#include "shoal/text/source.h"

namespace shoal::app {
namespace {

constexpr Command verbs[] = {
    {"train", "find the topics of texts", declare_topics_train},
    {"update", "more documents into a model", declare_topics_update},
    {"infer", "topics of documents that a model has not seen", declare_topics_infer},
    {"evaluate", "how likely, how foreseeing and how coherent a model's topics are", declare_topics_evaluate},
    {"show", "a model's topics as words", declare_topics_show},
};

}  // namespace

Action declare_topics(CLI::App& app) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& verb : verbs) {
    CLI::App* const made = app.add_subcommand(verb.name, verb.summary);
    actions.emplace_back(made, verb.declare(*made));
  }
  return [actions](const Words& after_dashes) {
    for (const auto& [verb, action] : actions) {
      if (verb->parsed()) return action(after_dashes);
    }
    return 0;
  };
}

TopicsModel::TopicsModel(const std::string& folder) {
  const learn::ModelFolder from(folder);
  config = from.config(learn::topic::kLearner);
  model = learn::topic::read_model(from);
}

text::Corpus TopicsModel::read(const TextOptions& options, bool quiet) const {
  TextOptions as_trained = options;
  as_trained.words_as(config.value("words", learn::Json::object()));
  text::Source source = as_trained.source();
  source.vocabulary = &model.vocabulary;
  source.keep_unknown = true;
  auto [corpus, reading] = text::read_corpus(source);
  if (!quiet) fmt::print(stderr, "{}\n", text::sentence(reading));
  return std::move(corpus);
}

std::size_t threads_of(unsigned asked) {
  if (asked > 0) return asked;
  // Launchers say with it how many cores a member has beside others on its host.
  const char* const said = std::getenv("OMP_NUM_THREADS");
  const long cores = said == nullptr ? 0 : std::strtol(said, nullptr, 10);
  return cores > 0 && cores < 4096 ? static_cast<std::size_t>(cores) : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace shoal::app
