// shoal topics train among the members that there are: documents dealt, topics drawn, results written; again when one is lost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/topics_progress.h"
#include "app/topics_train.h"
#include "shoal/core/error.h"
#include "shoal/learn/topic/memory.h"
#include "shoal/learn/topic/speed.h"
#include "shoal/net/call.h"

namespace shoal::app {
namespace {

namespace topic = learn::topic;

std::string sentence(const topic::Look& look, const data::Names& words, unsigned sweeps) {
  std::string text = fmt::format("sweep {} of {}: log-likelihood {:.4f} a token, ", look.sweep, sweeps, look.log_likelihood);
  if (look.perplexity != 0) text += fmt::format("held-out perplexity {:.0f}, ", look.perplexity);
  if (look.mean_perplexity != 0) text += fmt::format("{:.0f} by the mean of late states, ", look.mean_perplexity);
  text += fmt::format("{:.1f} M tokens/s ({:.0f} % waiting), {:.1f} % changed, ", look.rate / 1e6, 100 * look.waited, 100 * look.changed);
  if (look.sent != 0) text += fmt::format("{:.2f} MB of rows sent a sweep, ", look.sent / 1e6);
  text += fmt::format("{:.0f} MB\n", look.memory / 1e6);
  return text + lines_of(look.words, words);
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

}  // namespace

topic::ForeseenBytes Attempts::foreseen(net::Rank members) const {
  const std::vector<std::uint32_t>& threads = how_.dealing.threads;  // once they are agreed on
  const std::uint32_t workers = threads.size() == members ? std::accumulate(threads.begin(), threads.end(), 0u) : members * how_.threads;
  return topic::foreseen(corpus_.frequencies, options_.topics, members, workers);
}

void Attempts::say(const std::string& line) const {
  if (first_ && !options_.json) app::say(line);
}

// Those of a member that is lost are read by those who have them now.
void Attempts::read(const data::Share& share) {
  corpus_ = {};  // the old one goes first
  corpus_ = text::read_corpus(options_.texts.source(), share).first;
  if (corpus_.digest != digest_) refuse("is not what it was when training began", options_.texts.files.front(), "train anew");
}

// What members bring decides who has which documents (dealing.h): who has others now reads them.
data::Share Attempts::deal(learn::Gather& gather, net::Transport& among) {
  const topic::MemberPart part{.topics = options_.topics, .members = among.size(), .threads = how_.threads, .staleness = how_.staleness,
                               .sampling = how_.sampling, .first = first_, .parallel = how_.parallel};
  topic::Speed own = topic::speed_of(options_.speed);
  own.found = speed_.value_or(0);
  speed_ = topic::agreed_speeds(among, gather, corpus_, how_, topic::kTrialChannel, own)[among.rank()];
  how_.dealing = topic::agreed(gather, topic::brought(how_.memory, corpus_, part, *speed_), corpus_.all_tokens);
  const auto& [threads, memory, speeds, turns] = how_.dealing;
  const auto alike = [](const auto& values) { return std::ranges::count(values, values.front()) == std::ssize(values); };
  config_["members"] = among.size();
  config_["threads"] = alike(threads) ? learn::Json(how_.threads) : learn::Json(threads);
  config_["memory"] = alike(memory) ? learn::Json(options_.memory) : learn::Json(memory);
  const data::Share share = how_.dealing.share(among.rank(), among.size());
  config_.erase("dealt");
  config_.erase("speeds");
  std::string quick;
  if (!alike(speeds)) {
    std::vector<double> beside(among.size());  // the quickest's with which it began
    std::ranges::transform(speeds, beside.begin(), [](std::uint32_t of) { return of / double{topic::kFullSpeed}; });
    config_["speeds"] = beside;
    quick = fmt::format(" with a --speed of {}", fmt::join(beside, ", "));
  }
  if (turns.empty() && quick.empty()) return share;
  std::vector<std::size_t> dealt(among.size(), turns.empty() ? 1 : 0);
  for (const std::uint32_t of : turns) ++dealt[of];
  say(fmt::format("members have {} threads{}; of each {} documents they have {}\n", fmt::join(threads, ", "), quick,
                  std::accumulate(dealt.begin(), dealt.end(), std::size_t{0}), fmt::join(dealt, ", ")));
  if (turns.empty()) return share;
  config_["dealt"] = dealt;  // of each so many documents
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
        .progressed =
            [&](unsigned sweep, double part) {
              progress.at(sweep, part);
              recording_.bring();
            },
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

}  // namespace shoal::app
