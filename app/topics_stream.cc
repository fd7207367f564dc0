// shoal topics train --method stream: documents as they come, batch after batch, of which nothing is kept but the model.
#include "app/topics_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "app/topics.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/fold_in.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/learn/topic/page.h"
#include "shoal/learn/topic/top_words.h"
#include "shoal/net/call.h"
#include "shoal/net/job.h"
#include "shoal/text/words_file.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;
namespace topic = learn::topic;

constexpr const char* kInput = "/dev/stdin";

class Streaming {
 public:
  Streaming(const StreamTraining& training, const net::Place& place)
      : training_(training), first_(place.rank == 0), folder_(training.folder), source_(training.texts.source()) {
    for (fs::path& file : source_.files) {
      if (file == "-") file = kInput;
    }
    if (place.size > 1 && std::ranges::count(source_.files, kInput) > 0)
      refuse("is read by one member, and there are " + std::to_string(place.size), "standard input", "name files that all members have");
    const bool ended_early = std::filesystem::exists(kept());
    if (first_ && ended_early && !training_.resume)
      refuse("holds what a stream that did not end has learnt", folder_.path().string(),
             "--resume goes on from it; or name another folder with --output");
    if (first_ && !ended_early && folder_.holds_model())
      refuse("holds a model already", folder_.path().string(), "name another folder with --output");
    if (source_.words_file.empty()) source_.words_file = text::words_file_beside(source_.files.front());
    if (source_.words_file.empty()) refuse("is needed: a stream does not say beforehand which words there will be", "--vocab", "a file with a word a line");
    vocabulary_ = text::read_words_file(source_.words_file);
    source_.vocabulary = &vocabulary_;
    config_ = {{"learner", topic::kLearner},
               {"method", "stream"},
               {"topics", training.how.prior.alpha.size()},
               {"alpha", training.alpha},
               {"beta", training.how.prior.beta},
               {"batch", training.flags.batch},
               {"tau0", training.flags.tau0},
               {"kappa", training.flags.kappa},
               {"of_documents", training.flags.documents},
               {"seed", training.how.seed},
               {"members", place.size},
               {"words", training.texts.words()}};
    // What all members of a run must have alike: texts and words may lie elsewhere on each.
    for (const auto& [name, value] : config_.items()) alike_[name] = value.dump();
    alike_["words of --vocab"] = fmt::format("{:016x}", vocabulary_.digest());
    const learn::Json read_from = training.texts.read_from();  // what comes next may come from elsewhere
    config_.update(read_from);
    if (first_ && ended_early) {
      folder_.require(config_, [&](const std::string& entry) { return entry == "members" || read_from.contains(entry); });
    }
  }

  int run();

 private:
  void say(const std::string& line) const {
    if (first_) app::say(line);
  }
  fs::path kept() const { return folder_.path() / "stream.safetensors"; }  // where to go on from: there until the stream has ended
  void take(const text::Corpus& batch);
  void look(double perplexity);
  void keep(bool last);

  const StreamTraining& training_;
  const bool first_;
  learn::ModelFolder folder_;
  text::Source source_;
  data::Names vocabulary_;
  learn::Json config_;
  std::map<std::string, std::string> alike_;
  std::optional<topic::Stream> stream_;
  unsigned known_ = 0;           // batches that are in the files and were learnt from before
  text::Corpus last_;            // batch
  double seconds_ = 0;           // of learning
  std::uint64_t documents_ = 0;  // up to the last look
  double since_ = 0;             // seconds_ then
};

void Streaming::take(const text::Corpus& batch) {
  if (known_ > 0) {
    --known_;
    return;
  }
  const unsigned number = stream_->batches() + 1;
  const bool looks = training_.look_every != 0 && number % training_.look_every == 0;
  const double perplexity = looks ? stream_->foretell(batch.documents).perplexity() : 0;
  const auto begun = std::chrono::steady_clock::now();
  stream_->learn(batch.documents);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (looks) look(perplexity);
  last_.documents = batch.documents;
  last_.names = batch.names;
  const bool whole = batch.documents.size() == training_.flags.batch;  // else it is the last, which could not be told apart when the files have grown
  if (whole && training_.keep_every != 0 && number % training_.keep_every == 0) keep(false);
}

void Streaming::look(double perplexity) {
  if (!first_) return;
  const double rate = static_cast<double>(stream_->documents() - documents_) / std::max(seconds_ - since_, 1e-9);
  if (training_.json) {
    const learn::Json line{{"batch", stream_->batches()}, {"documents", stream_->documents()}, {"tokens", stream_->tokens()},
                           {"seconds", seconds_},         {"perplexity", perplexity},          {"documents_per_s", rate},
                           {"memory_bytes", stream_->memory()}};
    say(line.dump() + "\n");
  } else {
    std::string text = fmt::format("batch {}: {}, perplexity {:.0f} of this batch before it was learnt, {:.0f} documents/s, {:.0f} MB\n",
                                   stream_->batches(), show_count(stream_->documents(), "documents"), perplexity, rate,
                                   static_cast<double>(stream_->memory()) / 1e6);
    say(text + lines_of(topic::some_words(stream_->model(), stream_->batches() / training_.look_every), vocabulary_));
  }
  documents_ = stream_->documents();
  since_ = seconds_;
}

// Files of the model as it is by now; with the last, the pages, on which documents of the last batch are the examples.
void Streaming::keep(bool last) {
  if (!first_) return;
  const topic::Model model = stream_->model();
  if (last) {
    const topic::Phi phi(model);
    topic::FoldIn fold_in(phi);
    topic::Examples examples(model.topics(), topic::largest(model.totals, topic::kMostShown));
    std::vector<topic::Mixture> mixtures(std::min(last_.documents.size(), topic::kPyldavisDocuments));
    for (std::size_t d = 0; d < mixtures.size(); ++d) {
      fold_in(last_.documents[d], mixtures[d]);
      examples.offer(last_.names[d], last_.documents[d], mixtures[d], vocabulary_);
    }
    topic::write_pages(folder_, model, examples, mixtures, show_count(stream_->documents(), "documents") + " of a stream");
  }
  if (!last) stream_->keep(kept());
  topic::write_model(folder_, model);
  config_["documents"] = stream_->documents();
  config_["tokens"] = stream_->tokens();
  config_["vocabulary"] = vocabulary_.size();
  folder_.describe(config_);
  if (std::error_code none; last) fs::remove(kept(), none);
}

int Streaming::run() {
  net::JoinOptions joining;
  joining.settings = alike_;
  joining.settings["program"] = "shoal topics train";
  const bool goes_on = training_.resume && fs::exists(kept());
  joining.settings["goes on"] = goes_on ? "from what was kept" : "";
  const auto job = net::join(joining);
  try {
    topic::StreamOptions how = training_.how;
    how.tau0 = training_.flags.tau0;
    how.kappa = training_.flags.kappa;
    how.documents = training_.flags.documents;
    stream_.emplace(job->transport(), vocabulary_, how);
    if (goes_on) {
      stream_->go_on_from(kept());
      documents_ = stream_->documents();
      known_ = std::ranges::count(source_.files, kInput) > 0 ? 0 : stream_->batches();
    }
    if (training_.resume && !training_.json)
      say(goes_on ? fmt::format("goes on after {} in {} batches\n", show_count(documents_, "documents"), stream_->batches())
                  : "nothing to go on from: begins anew\n");
    if (first_) {
      folder_.begin(config_);
      topic::write_document_rows(folder_, std::nullopt);
    }
    const text::Reading reading = text::read_batches(source_, training_.flags.batch, [this](const text::Corpus& batch) { take(batch); });
    keep(true);
    if (!training_.json) say(text::sentence(reading) + "\n");
    stream_.reset();  // before the job
  } catch (const Error& error) {
    net::call(job->transport(), [&] { job->transport().fail(error); });  // the others end with the same line
    stream_.reset();
    throw;
  }
  if (!training_.json) say(fmt::format("model in {}; {} shows its topics\n", folder_.path().string(), (folder_.path() / "index.html").string()));
  return 0;
}

}  // namespace

void declare_stream(CLI::App& app, StreamFlags& flags) {
  flag(app, "--method", flags.method,
       "gibbs: sweeps over all documents (default); stream: online variational Bayes, which sees each document once and keeps none: - is standard "
       "input, and --vocab says which words there are");
  flag(app, "--batch", flags.batch, "of stream: documents that are learnt from together, of all members (default: 2000)");
  flag(app, "--tau0", flags.tau0, "of stream: how much less the first batches say, at least 1 (default: 1)");
  flag(app, "--kappa", flags.kappa, "of stream: how soon earlier batches are forgotten, from 0.5 to 1, which is never (default: 0.5)");
  flag(app, "--documents", flags.documents, "of stream: how many there will be in all, or as many as have come if these are more (default: 1000000)");
}

void StreamFlags::check(const CLI::App& app) const {
  if (method != "gibbs" && method != "stream") refuse("\"" + method + "\" is none", "--method", "gibbs or stream");
  if (batch < 1 || batch > 10'000'000) refuse("is between 1 and 10000000", "--batch");
  constexpr const char* of_gibbs[] = {"--sweeps", "--fixed-prior", "--symmetric-alpha", "--test-share", "--heldout", "--seed-words", "--sampler",
                                      "--mh-steps", "--staleness", "--start", "--parallel", "--speed"};
  constexpr const char* of_stream[] = {"--batch", "--tau0", "--kappa", "--documents"};
  const auto none_of = [&](const auto& names, const char* other) {
    for (const char* const name : names) {
      if (app.get_option(name)->count() > 0) refuse(std::string("is of --method ") + other, name, "leave it out");
    }
  };
  on() ? none_of(of_gibbs, "gibbs") : none_of(of_stream, "stream");
}

int train_stream(const StreamTraining& training) { return Streaming(training, net::find_place()).run(); }

}  // namespace shoal::app
