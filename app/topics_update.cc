// shoal topics update MODEL TEXTS --output NEW: more documents into a model, by what of it is in its folder.
#include <fmt/format.h>

#include <fstream>

#include "app/progress.h"
#include "app/topics.h"
#include "app/topics_state.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/learn/topic/training.h"
#include "shoal/learn/topic/update.h"
#include "shoal/net/job.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;
namespace topic = learn::topic;

struct UpdateOptions {
  TextOptions texts;
  std::string model, output;
  StateFlags state;
  unsigned sweeps = 50, threads = 0;
  std::uint64_t seed = 1;
  bool new_words = false;
};

// The model's words first, in its numbers, and behind them those that it does not know.
void renumber(text::Corpus& corpus, const data::Names& known) {
  data::Names all = known;
  std::vector<std::uint32_t> number(corpus.vocabulary.size());
  for (std::uint32_t word = 0; word < number.size(); ++word) number[word] = all.number(corpus.vocabulary[word]);
  text::Documents documents = corpus.documents.none_alike();
  std::vector<std::uint32_t> words;
  for (std::size_t d = 0; d < corpus.documents.size(); ++d) {
    words.clear();
    for (const std::uint32_t word : corpus.documents[d]) words.push_back(number[word]);
    documents.append(words);
  }
  documents.finish();
  documents.ordered = corpus.documents.ordered;
  std::vector<std::uint64_t> frequencies(all.size());
  for (std::uint32_t word = 0; word < number.size(); ++word) frequencies[number[word]] = corpus.frequencies[word];
  corpus.documents = std::move(documents);
  corpus.vocabulary = std::move(all);
  corpus.frequencies = std::move(frequencies);
}

// Tokens of words that the model does not know, which say nothing of topics, are taken out: how many each document had.
std::vector<std::uint32_t> take_unknown_out(text::Corpus& corpus) {
  text::Documents documents = corpus.documents.none_alike();
  std::vector<std::uint32_t> words, unknown;
  for (std::size_t d = 0; d < corpus.documents.size(); ++d) {
    words.assign(corpus.documents[d].begin(), corpus.documents[d].end());
    unknown.push_back(static_cast<std::uint32_t>(std::erase(words, text::kUnknownWord)));
    documents.append(words);
  }
  documents.finish();
  documents.ordered = corpus.documents.ordered;
  corpus.documents = std::move(documents);
  corpus.all_tokens = corpus.documents.tokens();
  return unknown;
}

text::Corpus read(const TopicsModel& from, const UpdateOptions& options) {
  TextOptions as_trained = options.texts;
  as_trained.words_as(from.config.value("words", learn::Json::object()));
  const text::Source source = options.new_words ? as_trained.source() : in_words_of(from.model.vocabulary, as_trained);
  auto [corpus, reading] = text::read_corpus(source);
  fmt::print("{}\n", text::sentence(reading));
  if (options.new_words) renumber(corpus, from.model.vocabulary);
  return std::move(corpus);
}

std::vector<std::string> document_lines(const learn::ModelFolder& folder) {
  std::vector<std::string> lines;
  std::ifstream file(folder.path() / "doc_topics.tsv", std::ios::binary);
  std::string line;
  std::getline(file, line);  // names of columns
  while (std::getline(file, line)) lines.push_back(line + '\n');
  return lines;
}

// What more documents come into: a model, and what is known of the documents that it was made of.
struct Base {
  TopicsModel model;
  std::vector<std::string> lines;  // of doc_topics.tsv
  std::optional<topic::DocumentRows> rows;
};

Base base_from_folder(const std::string& path) {
  Base base{TopicsModel(path), {}, {}};
  const learn::ModelFolder folder(path);
  base.lines = document_lines(folder);
  if (const auto said = base.model.config.value("documents", std::uint64_t{0}); !base.lines.empty() && base.lines.size() != said) {
    throw folder.damaged(topic::kLearner, fmt::format("doc_topics.tsv has {}, config.json says {}", show_count(base.lines.size(), "lines"), said));
  }
  base.rows = topic::read_document_rows(folder, base.model.model);
  return base;
}

// Another program's topics of tokens, as training would have left them.
Base base_from_state(const UpdateOptions& options) {
  topic::PeerState state = options.state.read(options.model);
  Base base{TopicsModel(std::move(state.model)), {}, topic::DocumentRows()};
  const topic::Model& model = base.model.model;
  const topic::Phi phi(model);
  topic::TopicCounter count;
  for (std::size_t d = 0; d < state.documents.size(); ++d) {
    const auto counts = count(std::span(state.topics).subspan(state.documents.offsets[d], state.documents[d].size()));
    base.rows->add(counts);
    topic::Mixture mixture = topic::mixture_of(counts, phi);
    mixture.keep_largest(phi, topic::kSmallestShare, topic::kMostTopics);
    base.lines.push_back(topic::document_line(state.names[d], mixture));
  }
  base.model.config = {{"learner", topic::kLearner}, {"state", options.state.format}, {"files", {options.model}}, {"topics", model.topics()},
                       {"beta", model.prior.beta}, {"documents", state.documents.size()}, {"tokens", state.documents.tokens()}};
  return base;
}

int update(const UpdateOptions& options) {
  if (options.sweeps < 1 || options.sweeps > 1'000'000) refuse("is between 1 and 1000000", "--sweeps");
  only_one_member("shoal topics update");
  options.state.check();
  learn::ModelFolder folder(options.output);
  if (folder.holds_model()) refuse("holds a model already", folder.path().string(), "name another folder with --output");
  folder.require_place();
  Base base = options.state.on() ? base_from_state(options) : base_from_folder(options.model);
  const TopicsModel& from = base.model;
  text::Corpus corpus = read(from, options);
  std::vector<std::uint32_t> unknown = take_unknown_out(corpus);
  const topic::Model before = topic::with_words(from.model, corpus.vocabulary);
  const auto threads = static_cast<std::uint32_t>(threads_of(options.threads));
  learn::Json config = from.config;
  config["documents"] = config.value("documents", std::uint64_t{0}) + corpus.all_documents;
  config["tokens"] = config.value("tokens", std::uint64_t{0}) + corpus.all_tokens;
  config["vocabulary"] = corpus.vocabulary.size();
  learn::Json entry{{"documents", corpus.all_documents},
                    {"tokens", corpus.all_tokens},
                    {"sweeps", options.sweeps},
                    {"seed", options.seed},
                    {"threads", threads},
                    {"new_words", options.new_words}};
  entry.update(options.texts.read_from());
  config["updates"].push_back(std::move(entry));
  folder.begin(config);

  const auto job = net::join();
  const topic::Kept begun = topic::begun(before, corpus.documents, options.seed, 0, threads);
  topic::Lda lda(job->transport(), corpus, {.prior = before.prior, .seed = options.seed, .threads = threads}, &begun, &before);
  {
    Progress progress(true);
    topic::train(
        lda, nullptr, nullptr, {.sweeps = options.sweeps, .optimise = false, .look_every = 0, .keep_every = 0},
        {.progressed = [&](unsigned sweep,
                           double part) { progress.at(fmt::format("sweep {} of {}", sweep, options.sweeps), (sweep - 1 + part) / options.sweeps); },
         .looked = {}});
  }
  fmt::print("log-likelihood of the new documents after those of the model {:.4f} a token\n", lda.log_likelihood().per_token());

  learn::Gather gather(job->transport(), topic::kGatherChannel);
  write_results(lda, gather, folder, {.before = std::move(base.lines), .rows = std::move(base.rows), .unknown = std::move(unknown)});
  fmt::print("model in {}\n", folder.path().string());
  return 0;
}

}  // namespace

Action declare_topics_update(CLI::App& app) {
  const auto options = std::make_shared<UpdateOptions>();
  app.add_option("model", options->model, "folder that shoal topics train left, or a file of --state")->required();
  declare_texts(app, options->texts);
  declare_state(app, options->state);
  flag(app, "--output", options->output, "folder of the model with the new documents")->required();
  switch_on(app, "--new-words", options->new_words,
            "words that the model does not know come into its vocabulary; otherwise they are dropped and counted");
  flag(app, "--sweeps", options->sweeps, "times that each new token's topic is drawn (default: 50)");
  flag(app, "--seed", options->seed, "of all that is drawn (default: 1)");
  flag(app, "--threads", options->threads, kThreadsOfThis);
  return [options](const Words&) { return update(*options); };
}

}  // namespace shoal::app
