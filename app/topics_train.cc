// shoal topics train: a topic model of texts, on all threads of one member or of those of a job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "app/topics_train.h"
#include "shoal/collective/going_on.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/learn/topic/speed.h"
#include "shoal/text/seed_words.h"

namespace shoal::app {

namespace fs = std::filesystem;
namespace topic = learn::topic;

// --alpha: one number for each topic alike, or one for each of them.
topic::Prior TrainTopicsOptions::prior() const {
  if (topics < 1 || topics > 1u << 24) refuse("is between 1 and 16777216", "--topics");
  if (alpha.empty()) return {std::vector<double>(topics, alpha_sum / topics), beta};
  std::vector<double> values;
  for (std::size_t begin = 0; begin <= alpha.size();) {
    const std::size_t end = std::min(alpha.find(',', begin), alpha.size());
    const std::string word = alpha.substr(begin, end - begin);
    char* rest = nullptr;
    values.push_back(std::strtod(word.c_str(), &rest));
    if (word.empty() || *rest != '\0' || !(values.back() > 0) || !std::isfinite(values.back()))
      refuse("\"" + word + "\" is no number above 0", "--alpha");
    begin = end + 1;
  }
  if (values.size() == 1) values.assign(topics, values.front());
  if (values.size() != topics)
    refuse(fmt::format("has {} numbers for {} topics", values.size(), topics), "--alpha", "one for all, or one for each topic");
  return {values, beta};
}

namespace {

void check(const TrainTopicsOptions& options) {
  if (options.parallel != "auto") topic::parallel_of(options.parallel);  // these refuse what is none
  topic::speed_of(options.speed);
  if (!(options.alpha_sum > 0) || !std::isfinite(options.alpha_sum)) refuse(fmt::format("{} is not above 0", options.alpha_sum), "--alpha-sum");
  if (!(options.beta >= 1e-9 && options.beta <= 1e9)) refuse(fmt::format("{} is not between 1e-9 and 1e9", options.beta), "--beta");
  if (!(options.test_share >= 0 && options.test_share < 1)) refuse(fmt::format("{} is not in [0, 1)", options.test_share), "--test-share");
  if (options.training.sweeps < 1 || options.training.sweeps > 1'000'000) refuse("is between 1 and 1000000", "--sweeps");
  if (options.threads > topic::kMostThreads) refuse(fmt::format("is at most {}", topic::kMostThreads), "--threads");
  if (options.steps > 1024) refuse("is at most 1024", "--mh-steps");
  if (options.staleness > 1'000'000) refuse("is at most 1000000", "--staleness");
}

std::uint64_t bytes_of(const std::string& memory) {
  if (memory.empty()) return 0;
  try {
    if (const std::uint64_t bytes = parse_size(memory); bytes != 0) return bytes;
  } catch (const Error& error) {
    throw Error(error.code(), error.fact(), "--memory", error.hint());
  }
  refuse("is above 0", "--memory");
}

fs::path folder_for(const TrainTopicsOptions& options) {
  if (!options.output.empty()) return options.output;
  return folder_named_after(options.texts.files.front(), ".topics");
}

// What a run may change that goes on from where another one ended. How files are read is asked by what came of it: "data".
bool may_differ(const std::string& entry) {
  constexpr std::string_view all[] = {"members", "threads", "parallel", "memory", "sweeps", "keep_every", "format", "column", "vocab"};
  return std::ranges::count(all, entry) > 0;
}

int train(TrainTopicsOptions options) {
  check(options);
  if (options.stream.on()) {
    return train_stream({.texts = options.texts,
                         .flags = options.stream,
                         .how = {.prior = options.prior(), .seed = options.seed, .threads = static_cast<std::uint32_t>(threads_of(options.threads))},
                         .alpha = options.said_alpha(),
                         .folder = folder_for(options),
                         .look_every = options.training.look_every,
                         .keep_every = options.training.keep_every,
                         .resume = options.resume,
                         .json = options.json});
  }
  // What documents take is known when they are read: so they are on disk from the beginning.
  options.texts.on_disk |= !options.memory.empty();
  topic::LdaOptions lda_options{.prior = options.prior(), .seed = options.seed, .threads = static_cast<std::uint32_t>(threads_of(options.threads)),
                                .staleness = options.staleness,
                                .start = topic::start_of(options.start),
                                .alpha_form = options.symmetric_alpha ? topic::AlphaForm::of_all_alike : topic::AlphaForm::of_each_topic,
                                .sampling = {topic::sampler_of(options.sampler), options.steps},
                                .memory = bytes_of(options.memory),
                                .blocks_in = fs::current_path()};
  const net::Place place = net::find_place();
  const bool first = place.rank == 0;
  learn::ModelFolder folder(folder_for(options));
  if (first && folder.holds_model()) refuse("holds a model already", folder.path().string(), "name another folder with --output");
  if (first) folder.require_place();
  auto [corpus, reading] = text::read_corpus(options.texts.source(), {place.rank, place.size});
  if (first && !options.json) say(text::sentence(reading) + "\n");

  learn::Json config{{"learner", topic::kLearner},
                     {"topics", options.topics},
                     {"alpha", options.said_alpha()},
                     {"beta", options.beta},
                     {"optimised", !options.fixed_prior},
                     {"symmetric_alpha", options.symmetric_alpha},
                     {"sweeps", options.training.sweeps},
                     {"seed", options.seed},
                     {"start", options.start},
                     {"seed_words", options.seed_words},
                     {"members", place.size},  // as it begins
                     {"threads", lda_options.threads},
                     {"staleness", options.staleness},
                     {"parallel", options.parallel},
                     {"memory", options.memory},
                     {"sampler", options.sampler},
                     {"mh_steps", options.steps},
                     {"test_share", options.test_share},
                     {"heldout", options.heldout},
                     {"keep_every", options.training.keep_every},
                     {"words", options.texts.words()},
                     {"documents", corpus.all_documents},
                     {"tokens", corpus.all_tokens},
                     {"data", fmt::format("{:016x}", corpus.digest)},
                     {"vocabulary", corpus.vocabulary.size()}};
  const learn::Json read_from = options.texts.read_from();
  config.update(read_from);
  if (first && topic::Checkpoints::any(folder.path())) {
    if (!options.resume)
      refuse("holds checkpoints of a run that did not end", folder.path().string(),
             "--resume goes on from them; or remove its checkpoint, or name another folder with --output");
    folder.require(config, may_differ);
  }
  net::JoinOptions joining;
  joining.settings["program"] = "shoal topics train";
  // Members may bring different threads and memory, and have the same texts and words elsewhere: what came of them is compared ("data").
  for (const auto& [name, value] : config.items()) {
    if (name != "threads" && name != "memory" && !read_from.contains(name)) joining.settings[name] = learn::ModelFolder::to_text(value);
  }
  joining.settings["look_every"] = std::to_string(options.training.look_every);
  joining.settings["resume"] = options.resume ? "yes" : "no";
  if (!options.seed_words.empty()) {
    const text::SeedWords seeds = text::read_seed_words(options.seed_words, corpus.vocabulary, options.topics);
    for (const auto& [topic, word] : seeds.seeds) {
      lda_options.seeds.emplace_back(word, topic);
      joining.settings["seed words"] += fmt::format("{}:{} ", topic, word);
    }
    if (first && !options.json) say(text::sentence(seeds) + "\n");
  }
  const auto job = net::join(joining);
  Recording recording(place);
  Attempts attempts(options, lda_options, std::move(config), std::move(corpus), folder, place, recording);
  collective::go_on_without_lost(job->transport(), "the training", [&](net::Transport& among) { attempts.make(among); });
  topic::Checkpoints::remove(folder.path());
  if (attempts.first() && !options.json)
    say(fmt::format("model in {}; {} shows its topics\n", folder.path().string(), (folder.path() / "index.html").string()));
  return 0;
}

}  // namespace

Action declare_topics_train(CLI::App& app) {
  const auto options = std::make_shared<TrainTopicsOptions>();
  declare_texts(app, options->texts);
  declare_words(app, options->texts);
  flag(app, "-k,--topics", options->topics, "how many (default: 100)");
  flag(app, "--sweeps", options->training.sweeps, "times that each token's topic is drawn (default: 200)");
  flag(app, "--alpha-sum", options->alpha_sum, "prior of topics in a document, of all topics together (default: 5)");
  flag(app, "--alpha", options->alpha, "the same for each topic: a number, or one a topic with commas between");
  flag(app, "--beta", options->beta, "prior of a word in a topic (default: 0.01)");
  switch_on(app, "--fixed-prior", options->fixed_prior, "keep alpha and beta; otherwise they are fitted to the counts from sweep 100 on");
  switch_on(app, "--symmetric-alpha", options->symmetric_alpha, "fit one alpha for all topics; otherwise each topic has its own");
  flag(app, "--test-share", options->test_share, "share of the documents that is held out to score the model, at most 500 (default: 0.005)");
  flag(app, "--heldout", options->heldout, "two files with halves of the same documents, to score the model: the second is foretold after the first")
      ->expected(2);
  flag(app, "--seed-words", options->seed_words, "file of topics, from 0, and the words that begin with them: topic<TAB>word word ...");
  flag(app, "--start", options->start,
       "random: tokens begin with any topics (default); online: each with one drawn after those before it, which takes much less memory where there "
       "are many topics");
  flag(app, "--seed", options->seed, "of all that is drawn (default: 1)");
  flag(app, "--threads", options->threads, kThreadsOfThis);
  flag(app, "--speed", options->speed,
       "how quick this member's threads are beside others', a number in any unit; measured: they are tried; auto, the default, does so where members' "
       "processors differ");
  flag(app, "--memory", options->memory,
       "most that each member takes, such as 4G: documents beyond it are in files without names in this folder (default: what it takes)");
  flag(app, "--parallel", options->parallel,
       "of several members: rotation (rows of words go round), data (each has all rows and tells the others what it changed); auto, the default, takes "
       "what sends less");
  flag(app, "--sampler", options->sampler, "auto, exact, lightlda, warplda, xy or gibbs: how topics are drawn (default: auto, which is exact)");
  flag(app, "--mh-steps", options->steps, "proposals a token: pairs of lightlda (default: 2), of each of warplda's passes (default: 1)");
  flag(app, "--staleness", options->staleness, "steps by which other threads' topic totals are late, and with --parallel data other members' rows (default: 1)");
  flag(app, "--look-every", options->training.look_every, "sweeps from one look at the model to the next (default: 10)");
  flag(app, "--keep-every", options->training.keep_every, "sweeps from one checkpoint to the next (default: 50; 0: none)");
  switch_on(app, "--resume", options->resume, "go on from the folder's checkpoint, if it has one");
  flag(app, "--output", options->output, "folder of the model (default: the text's name and .topics)");
  declare_stream(app, options->stream);
  switch_on(app, "--json", options->json, "lines for machines");
  return [options, &app](const Words&) {
    options->stream.check(app);
    return train(*options);
  };
}

}  // namespace shoal::app
