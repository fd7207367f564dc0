// shoal topics evaluate MODEL [TEXTS]: by what it foretells, and by what people would say of its words.
#include <fmt/format.h>

#include <optional>

#include "app/topics.h"
#include "app/topics_state.h"
#include "shoal/core/chunks.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/coherence.h"
#include "shoal/learn/topic/completion.h"
#include "shoal/learn/topic/left_to_right.h"
#include "shoal/learn/topic/likelihood.h"
#include "shoal/learn/topic/top_words.h"

namespace shoal::app {
namespace {

namespace topic = learn::topic;

struct EvaluateOptions {
  TextOptions texts;
  std::string model, left_to_right;
  StateFlags state;
  std::vector<std::string> held_out;
  bool coherence = false, per_topic = false, json = false;
  std::size_t words = 10;
  unsigned particles = 20, threads = 0;
  std::uint64_t seed = 1;
};

class Evaluation {
 public:
  Evaluation(const EvaluateOptions& options, TopicsModel from) : options_(options), from_(std::move(from)), phi_(from_.model) {}
  int run();
  void likelihood(const topic::LogLikelihood& sum);

 private:
  text::Corpus read(const std::string& file) const;
  void say(const std::string& name, learn::Json figures, const std::string& sentence);
  void complete(const text::Documents& shown, const text::Documents& hidden);
  void complete_held_out();
  void left_to_right(const text::Documents& documents);
  void coherence(const text::Documents& documents);
  // Foretold documents, `count` of them, by part(begin, end).
  template <class Part>
  topic::Foretold foretell(std::size_t count, const Part& part) const;

  const EvaluateOptions& options_;
  const TopicsModel from_;
  const topic::Phi phi_;
};

// Throws Error{invalid_argument} where there is nothing to tell.
void require_scored(const topic::Foretold& sum) {
  if (sum.tokens == 0)
    throw Error(Code::invalid_argument, "no token could be scored", {}, fmt::format("{} are of words that the model does not know", show_count(sum.unknown)));
}

std::string unknown_of(const topic::Foretold& sum) {
  return sum.unknown == 0 ? "" : fmt::format("; {} not, whose words the model does not know", show_count(sum.unknown));
}

void Evaluation::say(const std::string& name, learn::Json figures, const std::string& sentence) {
  if (options_.json) {
    learn::Json line{{"figure", name}};
    line.update(figures);
    fmt::print("{}\n", line.dump(-1, ' ', false, learn::Json::error_handler_t::replace));
  } else {
    fmt::print("{}\n", sentence);
  }
}

// With the documents' part where topics of tokens are known.
void Evaluation::likelihood(const topic::LogLikelihood& sum) {
  const topic::Model& model = from_.model;
  std::uint64_t tokens = 0;
  for (const std::uint64_t total : model.totals) tokens += total;
  const double each = tokens > 0 ? 1 / static_cast<double>(tokens) : 0;
  const bool joint = sum.tokens > 0;
  learn::Json figures{{"tokens", tokens}, {"words", sum.words}, {"topics", sum.topics}};
  if (joint) figures.update({{"documents", sum.documents}, {"log_likelihood", sum.total()}, {"per_token", sum.per_token()}});
  say("likelihood", figures,
      fmt::format("{}, {}, {}; log-likelihood of the words {} {:.4f} a token", show_count(model.topics(), "topics"),
                  show_count(model.words(), "words"), show_count(tokens, "tokens"), joint ? "and their topics" : "given their topics",
                  sum.total() * each));
}

template <class Part>
topic::Foretold Evaluation::foretell(std::size_t count, const Part& part) const {
  std::vector<Part> workers(threads_of(options_.threads), part);
  topic::Foretold sum;
  in_chunks(count, workers, [&](const topic::Foretold& some) { sum += some; });
  return sum;
}

void Evaluation::complete(const text::Documents& shown, const text::Documents& hidden) {
  const topic::Foretold sum =
      foretell(shown.size(), [&](std::size_t begin, std::size_t end) { return topic::complete(phi_, shown, hidden, begin, end); });
  require_scored(sum);
  say("completion", {{"perplexity", sum.perplexity()}, {"documents", shown.size()}, {"tokens", sum.tokens}, {"unknown", sum.unknown}},
      fmt::format("perplexity {:.1f} of the hidden halves of {} ({} scored{})", sum.perplexity(), show_count(shown.size(), "documents"),
                  show_count(sum.tokens, "tokens"), unknown_of(sum)));
}

text::Corpus Evaluation::read(const std::string& file) const {
  TextOptions texts = options_.texts;
  texts.files = {file};
  return from_.read(texts, options_.json);
}

void Evaluation::complete_held_out() {
  const text::Corpus shown = read(options_.held_out[0]);
  const topic::HeldOut halves = met_by_name(shown, read(options_.held_out[1]));
  complete(halves.shown, halves.hidden);
}

void Evaluation::left_to_right(const text::Documents& documents) {
  const topic::LeftToRightOptions how{options_.particles, options_.left_to_right == "redraw", options_.seed};
  const topic::Foretold sum =
      foretell(documents.size(), [&](std::size_t begin, std::size_t end) { return topic::left_to_right(phi_, documents, begin, end, how); });
  require_scored(sum);
  say("left to right",
      {{"log_likelihood", sum.log_probability}, {"perplexity", sum.perplexity()}, {"tokens", sum.tokens}, {"unknown", sum.unknown}},
      fmt::format("from left to right perplexity {:.1f}, log-likelihood {:.4f} a token ({} scored{})", sum.perplexity(),
                  sum.tokens > 0 ? sum.log_probability / static_cast<double>(sum.tokens) : 0, show_count(sum.tokens, "tokens"), unknown_of(sum)));
}

void Evaluation::coherence(const text::Documents& documents) {
  std::vector<std::vector<std::uint32_t>> topics;
  for (const auto& best : topic::top_words(from_.model, options_.words)) {
    topics.emplace_back();
    for (const topic::WordCount& here : best) topics.back().push_back(here.word);
  }
  const auto counted_by = [&](unsigned window) {
    topic::Occurrences sum(topics, from_.model.words(), window);
    sum.add(documents, 0, documents.size());
    return sum;
  };
  const topic::Occurrences whole = counted_by(0);
  const topic::Occurrences pairs = documents.ordered ? counted_by(topic::kPairWindow) : whole;
  const topic::Occurrences vectors = documents.ordered ? counted_by(topic::kVectorWindow) : whole;
  double sums[4] = {};
  std::uint64_t lost = 0;
  for (topic::Topic k = 0; k < topics.size(); ++k) {
    const double figures[4] = {topic::c_v(topics[k], vectors), topic::npmi(topics[k], pairs), topic::uci(topics[k], pairs),
                               topic::u_mass(topics[k], whole)};
    for (int i = 0; i < 4; ++i) sums[i] += figures[i] / static_cast<double>(topics.size());
    lost += topic::missing(topics[k], whole);
    if (!options_.per_topic) continue;
    say("topic", {{"topic", k}, {"c_v", figures[0]}, {"npmi", figures[1]}, {"uci", figures[2]}, {"u_mass", figures[3]}},
        fmt::format("topic {}: C_V {:.4f}, NPMI {:.4f}, UCI {:.4f}, U_mass {:.4f}", k, figures[0], figures[1], figures[2], figures[3]));
  }
  say("coherence", {{"c_v", sums[0]}, {"npmi", sums[1]}, {"uci", sums[2]}, {"u_mass", sums[3]}, {"words", options_.words}, {"missing", lost}},
      fmt::format("coherence of {} a topic, mean of {}: C_V {:.4f}, NPMI {:.4f}, UCI {:.4f}, U_mass {:.4f}{}{}",
                  show_count(options_.words, "words"), show_count(topics.size(), "topics"), sums[0], sums[1], sums[2], sums[3],
                  documents.ordered ? "" : "; by documents, because bags of words have no windows",
                  lost == 0 ? "" : fmt::format("; {} of the words come in no text", show_count(lost))));
}

int Evaluation::run() {
  if (!options_.held_out.empty()) complete_held_out();
  if (options_.texts.files.empty()) {
    const char* const flag = options_.coherence ? "--coherence" : options_.left_to_right.empty() ? nullptr : "--left-to-right";
    if (flag != nullptr) throw Error(Code::invalid_argument, "needs texts", flag, "name files behind the model");
    return 0;
  }
  const text::Corpus corpus = from_.read(options_.texts, options_.json);
  if (options_.coherence) {
    coherence(corpus.documents);
  } else if (!options_.left_to_right.empty()) {
    left_to_right(corpus.documents);
  } else {
    const auto [shown, hidden] = topic::halves(corpus.documents, options_.seed);
    complete(shown, hidden);
  }
  return 0;
}

int evaluate(const EvaluateOptions& options) {
  only_one_member("shoal topics evaluate");
  options.state.check();
  if (!options.left_to_right.empty() && options.left_to_right != "redraw" && options.left_to_right != "leave") {
    throw Error(Code::invalid_argument, "\"" + options.left_to_right + "\" is none", "--left-to-right", "redraw or leave");
  }
  if (options.words < 2) throw Error(Code::invalid_argument, "is at least 2", "--words");
  if (options.particles < 1) throw Error(Code::invalid_argument, "is at least 1", "--particles");
  if (!options.state.on()) {
    TopicsModel model(options.model);
    const std::optional<topic::DocumentRows> rows = topic::read_document_rows(learn::ModelFolder(options.model), model.model);
    const topic::LogLikelihood sum = rows ? topic::log_likelihood(model.model, *rows) : topic::log_likelihood(model.model);
    Evaluation evaluation(options, std::move(model));
    evaluation.likelihood(sum);
    return evaluation.run();
  }
  topic::PeerState state = options.state.read(options.model);
  const topic::LogLikelihood sum = topic::log_likelihood(state);
  Evaluation evaluation(options, TopicsModel(std::move(state.model)));
  evaluation.likelihood(sum);
  return evaluation.run();
}

}  // namespace

Action declare_topics_evaluate(CLI::App& app) {
  const auto options = std::make_shared<EvaluateOptions>();
  app.add_option("model", options->model, "folder that shoal topics train left, or a file of --state")->required();
  declare_texts(app, options->texts);
  app.get_option("texts")->required(false);
  declare_state(app, options->state);
  flag(app, "--heldout", options->held_out, "two files with halves of the same documents: the second is foretold after the first")->expected(2);
  switch_on(app, "--coherence", options->coherence, "of the texts: whether the topics' words come together in them (C_V, NPMI, UCI, U_mass)");
  flag(app, "--words", options->words, "of a topic, for --coherence (default: 10)");
  switch_on(app, "--per-topic", options->per_topic, "a line a topic with its coherence");
  flag(app, "--left-to-right", options->left_to_right,
       "of the texts: whole documents word by word; redraw topics before each word, or leave them (quicker)");
  flag(app, "--particles", options->particles, "of --left-to-right (default: 20)");
  flag(app, "--seed", options->seed, "of halves and draws (default: 1)");
  flag(app, "--threads", options->threads, kThreadsOfThis);
  switch_on(app, "--json", options->json, "lines for machines");
  return [options](const Words&) { return evaluate(*options); };
}

}  // namespace shoal::app
