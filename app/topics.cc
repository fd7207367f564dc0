// shoal topics: what texts are about. Each verb has a file of its own.
#include "app/topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <unordered_map>

#include "shoal/core/error.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/net/job.h"
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
  auto [corpus, reading] = text::read_corpus(in_words_of(model.vocabulary, as_trained));
  if (!quiet) fmt::print(stderr, "{}\n", text::sentence(reading));
  return std::move(corpus);
}

text::Source in_words_of(const data::Names& vocabulary, const TextOptions& texts) {
  text::Source source = texts.source();
  source.vocabulary = &vocabulary;
  source.keep_unknown = true;
  return source;
}

learn::topic::HeldOut met_by_name(const text::Corpus& shown, text::Corpus hidden) {
  std::unordered_map<std::string_view, std::size_t> number;
  for (std::size_t d = 0; d < shown.names.size(); ++d) number.emplace(shown.names[d], d);
  learn::topic::HeldOut halves;
  bool met = hidden.names.empty();
  for (const std::string& name : hidden.names) {
    const auto found = number.find(name);
    met |= found != number.end();
    halves.shown.append(found == number.end() ? std::span<const std::uint32_t>() : shown.documents[found->second]);
  }
  if (!met) throw Error(Code::invalid_argument, "the two files have no document's name in common", "--heldout", "two halves of the same documents are needed");
  halves.hidden = std::move(hidden.documents);
  return halves;
}

std::string lines_of(const std::vector<std::vector<std::uint32_t>>& topics, const data::Names& vocabulary) {
  std::string text;
  for (const auto& topic : topics) {
    text += "    ";
    for (const std::uint32_t word : topic) text.append(1, ' ').append(vocabulary[word]);
    text += '\n';
  }
  return text;
}

void only_one_member(const char* command) {
  if (net::find_place().size > 1) refuse("runs on one member", command, "start it without shoal run; shoal topics train takes members");
}

std::size_t threads_of(unsigned asked) {
  if (asked > 4096) throw Error(Code::invalid_argument, "is at most 4096", "--threads");
  if (asked > 0) return asked;
  // Launchers say with it how many cores a member has beside others on its host.
  const char* const said = std::getenv("OMP_NUM_THREADS");
  const long cores = said == nullptr ? 0 : std::strtol(said, nullptr, 10);
  return cores > 0 && cores < 4096 ? static_cast<std::size_t>(cores) : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace shoal::app
