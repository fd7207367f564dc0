// shoal topics train: a topic model of texts, on all threads of one member or of those of a job.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string_view>

#include "app/topics.h"
#include "app/topics_progress.h"
#include "app/topics_stream.h"
#include "shoal/collective/going_on.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/memory.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/learn/topic/training.h"
#include "shoal/net/call.h"
#include "shoal/net/job.h"
#include "shoal/text/seed_words.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;
namespace topic = learn::topic;

struct TrainTopicsOptions {
  TextOptions texts;
  std::uint32_t topics = 100, threads = 0;
  std::string alpha, output, sampler = "auto", start = "random", parallel = "auto";
  std::string seed_words, memory;
  std::vector<std::string> heldout;
  double alpha_sum = 5, beta = 0.01, test_share = 0.005;
  std::uint64_t seed = 1;
  unsigned staleness = 1, steps = 0;
  topic::TrainingOptions training;
  StreamFlags stream;
  bool fixed_prior = false, symmetric_alpha = false, resume = false, json = false;

  topic::Prior prior() const;
  std::string said_alpha() const { return alpha.empty() ? fmt::format("{} in all", alpha_sum) : alpha; }
};

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

void check(const TrainTopicsOptions& options) {
  if (options.parallel != "auto") topic::parallel_of(options.parallel);  // refuses what is none
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

std::string sentence(const topic::Look& look, const data::Names& words, unsigned sweeps) {
  std::string text = fmt::format("sweep {} of {}: log-likelihood {:.4f} a token, ", look.sweep, sweeps, look.log_likelihood);
  if (look.perplexity != 0) text += fmt::format("held-out perplexity {:.0f}, ", look.perplexity);
  if (look.mean_perplexity != 0) text += fmt::format("{:.0f} by the mean of late states, ", look.mean_perplexity);
  text += fmt::format("{:.1f} M tokens/s ({:.0f} % waiting), {:.1f} % changed, ", look.rate / 1e6, 100 * look.waited, 100 * look.changed);
  if (look.sent != 0) text += fmt::format("{:.2f} MB of rows sent a sweep, ", look.sent / 1e6);
  text += fmt::format("{:.0f} MB\n", look.memory / 1e6);
  return text + lines_of(look.words, words);
}

// What a run may change that goes on from where another one ended. How files are read is asked by what came of it: "data".
bool may_differ(const std::string& entry) {
  constexpr std::string_view all[] = {"members", "threads", "parallel", "memory", "sweeps", "keep_every", "format", "column", "vocab"};
  return std::ranges::count(all, entry) > 0;
}

// What is sent, why this way, and which links are quick enough for it.
std::string sentence(const topic::ForeseenBytes& bytes, topic::Parallel chosen, bool asked) {
  const bool rotation = chosen == topic::Parallel::rotation;
  const topic::Parallel other = rotation ? topic::Parallel::data : topic::Parallel::rotation;
  const auto megabytes = [](double number) { return fmt::format("{:.1f} MB", number / 1e6); };
  std::string text = fmt::format("--parallel {}: at most {} of rows a sweep from each member, {} with {}", rotation ? "rotation" : "data",
                                 megabytes(bytes.of(chosen)), megabytes(bytes.of(other)), rotation ? "data" : "rotation");
  if (asked) {
    text += ", as asked";
  } else if (bytes.of(chosen) < bytes.of(other)) {
    text += ", so it is the quicker one: both draw the same tokens in the same steps";
  } else {
    text += ", so they are as quick, and this one takes less memory";
  }
  return text + fmt::format("; links of {:.0f} Mbit/s carry it while tokens are drawn\n", std::ceil(8e-6 * bytes.of(chosen) / bytes.seconds));
}

learn::Json to_json(const topic::Look& look) {
  learn::Json line{{"sweep", look.sweep}, {"seconds", look.seconds}, {"log_likelihood", look.log_likelihood}};
  if (look.perplexity != 0) line["perplexity"] = look.perplexity;
  if (look.mean_perplexity != 0) line["mean_perplexity"] = look.mean_perplexity;
  line.update({{"tokens_per_s", look.rate}, {"waited", look.waited}, {"sent_bytes", look.sent}, {"changed", look.changed},
               {"memory_bytes", look.memory}, {"model_bytes", look.model_memory}, {"rows_bytes", look.rows_memory}});
  return line;
}

// What a run does among the members that there are. When one is lost it does so again among those who are left, with all documents dealt anew, from
// the last sweep that was kept.
class Attempts {
 public:
  Attempts(const TrainTopicsOptions& options, const topic::LdaOptions& how, learn::Json config, text::Corpus corpus, learn::ModelFolder& folder,
           const net::Place& place)
      : options_(options), how_(how), config_(std::move(config)), digest_(corpus.digest), corpus_(std::move(corpus)), folder_(folder),
        members_(place.size), first_(place.rank == 0) {}

  void make(net::Transport& among);
  bool first() const { return first_; }  // whether this member is the one that speaks and writes

 private:
  void read(const data::Share& share);
  data::Share deal(learn::Gather& gather, const net::Transport& among);
  topic::HeldOut hold_out(learn::Gather& gather, const data::Share& share);
  std::optional<topic::Kept> kept(topic::Checkpoints& checkpoints, const data::Share& share);
  topic::ForeseenBytes foreseen(net::Rank members) const {
    const std::vector<std::uint32_t>& threads = how_.dealing.threads;  // once they are agreed on
    const std::uint32_t workers = threads.size() == members ? std::accumulate(threads.begin(), threads.end(), 0u) : members * how_.threads;
    return topic::foreseen(corpus_.frequencies, options_.topics, members, workers);
  }
  void say(const std::string& line) const {
    if (first_ && !options_.json) app::say(line);
  }

  const TrainTopicsOptions& options_;
  topic::LdaOptions how_;
  learn::Json config_;
  const std::uint64_t digest_;
  text::Corpus corpus_;
  learn::ModelFolder& folder_;
  const net::Rank members_;  // as it began
  bool first_;
};

// Those of a member that is lost are read by those who have them now.
void Attempts::read(const data::Share& share) {
  corpus_ = {};  // the old one goes first
  corpus_ = text::read_corpus(options_.texts.source(), share).first;
  if (corpus_.digest != digest_) refuse("is not what it was when training began", options_.texts.files.front(), "train anew");
}

// What members bring decides who has which documents (dealing.h): who has others now reads them.
data::Share Attempts::deal(learn::Gather& gather, const net::Transport& among) {
  const topic::MemberPart part{.topics = options_.topics, .members = among.size(), .threads = how_.threads, .staleness = how_.staleness,
                               .sampling = how_.sampling, .first = first_, .parallel = how_.parallel};
  how_.dealing = topic::agreed(gather, topic::brought(how_.memory, corpus_, part), corpus_.all_tokens);
  const auto& [threads, memory, turns] = how_.dealing;
  const auto alike = [](const auto& values) { return std::ranges::count(values, values.front()) == std::ssize(values); };
  config_["members"] = among.size();
  config_["threads"] = alike(threads) ? learn::Json(how_.threads) : learn::Json(threads);
  config_["memory"] = alike(memory) ? learn::Json(options_.memory) : learn::Json(memory);
  const data::Share share = how_.dealing.share(among.rank(), among.size());
  config_.erase("dealt");
  if (turns.empty()) return share;
  std::vector<std::size_t> dealt(among.size());
  for (const std::uint32_t of : turns) ++dealt[of];
  config_["dealt"] = dealt;  // of each so many documents
  say(fmt::format("members have {} threads; of each {} documents they have {}\n", fmt::join(threads, ", "), turns.size(), fmt::join(dealt, ", ")));
  read(share);
  return share;
}

topic::HeldOut Attempts::hold_out(learn::Gather& gather, const data::Share& share) {
  if (options_.heldout.empty())
    return options_.test_share > 0 ? topic::hold_out(gather, corpus_, share, options_.test_share, options_.seed) : topic::HeldOut();
  if (!first_) return {};
  const auto read = [&](const std::string& file) {
    TextOptions texts = options_.texts;
    texts.files = {file};
    return text::read_corpus(in_words_of(corpus_.vocabulary, texts)).first;
  };
  const text::Corpus shown = read(options_.heldout[0]);
  topic::HeldOut held_out = met_by_name(shown, read(options_.heldout[1]));
  if (std::ranges::count(held_out.hidden.words(), text::kUnknownWord) == std::ssize(held_out.hidden.words()))
    refuse("has no word of the vocabulary", options_.heldout[1], "where words are numbers, --vocab says what they are called");
  return held_out;
}

std::optional<topic::Kept> Attempts::kept(topic::Checkpoints& checkpoints, const data::Share& share) {
  std::optional<topic::Kept> newest = checkpoints.newest(corpus_, options_.topics, share);
  say(newest ? fmt::format("goes on after sweep {}\n", newest->sweeps) : "nothing to go on from: begins anew\n");
  if (newest && how_.memory != 0) newest->leave_to_disk(how_.blocks_in);
  return newest;
}

void Attempts::make(net::Transport& among) {
  const bool again = among.size() < members_;  // also where a member was lost before this one came here
  first_ = among.rank() == 0;
  // They outlive the catch: their tables must not be left before the others know why.
  std::optional<topic::Checkpoints> checkpoints;
  std::optional<topic::Lda> lda;
  try {
    if (again) read({among.rank(), among.size()});
    const bool asked = options_.parallel != "auto";
    how_.parallel = asked ? topic::parallel_of(options_.parallel) : foreseen(among.size()).cheaper();
    learn::Gather gather(among, topic::kGatherChannel);
    const data::Share share = deal(gather, among);
    if (among.size() > 1) say(sentence(foreseen(among.size()), how_.parallel, asked));
    const topic::HeldOut held_out = hold_out(gather, share);
    checkpoints.emplace(among, folder_.path());
    std::optional<topic::Kept> from = again || options_.resume ? kept(*checkpoints, share) : std::nullopt;
    lda.emplace(among, corpus_, how_, from ? &*from : nullptr);
    from.reset();
    if (first_) again ? folder_.take_over(config_) : folder_.begin(config_);
    if (lda->blocks() > 1) say(fmt::format("each thread's documents are in {} blocks on disk\n", lda->blocks()));

    const unsigned sweeps = options_.training.sweeps;
    TrainingProgress progress(first_ && !options_.json, static_cast<double>(corpus_.all_tokens), lda->sweeps(), sweeps);
    const topic::Watching watching{
        .progressed = [&](unsigned sweep, double part) { progress.at(sweep, part); },
        .looked =
            [&](const topic::Look& look) {
              progress.looked(look);
              if (first_) app::say(options_.json ? to_json(look).dump() + "\n" : sentence(look, corpus_.vocabulary, sweeps));
            }};
    topic::TrainingOptions training = options_.training;
    training.optimise = !options_.fixed_prior;
    topic::train(*lda, &held_out, &*checkpoints, training, watching);
    progress.clear();

    write_results(*lda, gather, folder_, {.held_out = &held_out});
    checkpoints->complete();
  } catch (const std::exception& error) {
    const auto* const told = dynamic_cast<const Error*>(&error);
    const Error why = told != nullptr ? *told : Error(Code::io, error.what(), "shoal topics train", "is there memory for it?");
    net::call(among, [&] { among.fail(why); });  // the others end with the same line
    if (told != nullptr) throw;
    throw why;
  }
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
  Attempts attempts(options, lda_options, std::move(config), std::move(corpus), folder, place);
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
