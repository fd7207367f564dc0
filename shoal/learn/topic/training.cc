#include "shoal/learn/topic/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "shoal/learn/topic/completion.h"
#include "shoal/learn/topic/memory.h"
#include "shoal/learn/topic/top_words.h"

namespace shoal::learn::topic {
namespace {

constexpr unsigned kBurnIn = 50, kOptimiseEvery = 10;
constexpr std::size_t kMostHeldOut = 500;    // documents: enough for a figure that scatters by less than 1 %
constexpr std::size_t kTopics = 3, kWords = 8;  // that are shown

// The words of a few topics: other ones at each look.
std::vector<std::vector<std::uint32_t>> some_words(const Model& model, unsigned look) {
  std::vector<std::vector<std::uint32_t>> words;
  std::vector<Topic> some;
  for (std::size_t i = 0; i < std::min<std::size_t>(kTopics, model.topics()); ++i) some.push_back(static_cast<Topic>((look * kTopics + i) % model.topics()));
  for (const auto& top : top_words(model, kWords, some)) {
    auto& shown = words.emplace_back();
    for (const auto& [word, count] : top) shown.push_back(word);
  }
  return words;
}

}  // namespace

HeldOut hold_out(text::Documents& documents, double share, std::uint32_t members, std::uint64_t seed) {
  text::Documents held_out, left = documents.none_alike();
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const bool out = documents[d].size() > 1 && held_out.size() < kMostHeldOut && unit(random_bits(~seed, d)) < share * members;
    if (out) held_out.append(documents[d]);
    left.append(out ? std::span<const std::uint32_t>() : documents[d]);
  }
  held_out.finish();
  left.finish();
  left.ordered = documents.ordered;
  documents = std::move(left);
  auto [shown, hidden] = halves(held_out, seed);
  return {std::move(shown), std::move(hidden)};
}

void train(Lda& lda, const HeldOut* held_out, Checkpoints* checkpoints, const TrainingOptions& options, const Watching& watching) {
  const bool scored = held_out != nullptr && held_out->hidden.tokens() != 0;
  double seconds = 0, since = 0, waited = 0;
  unsigned looks = 0, sweeps_since = 0;
  while (lda.sweeps() < options.sweeps) {
    const unsigned sweep = lda.sweeps() + 1;
    const SweepReport report = lda.sweep([&](double part) {
      if (watching.progressed) watching.progressed(sweep, part);
    });
    seconds += report.seconds;
    since += report.seconds;
    waited += report.waited;
    ++sweeps_since;
    if (options.optimise && sweep >= kBurnIn && sweep % kOptimiseEvery == 0) lda.optimise_prior();
    const bool last = sweep == options.sweeps;
    if (options.look_every != 0 && (sweep % options.look_every == 0 || last)) {
      Look look{.sweep = sweep, .seconds = seconds, .words = {}};
      look.waited = waited / (since * lda.options().threads);
      look.changed = report.tokens == 0 ? 0 : static_cast<double>(report.changed) / static_cast<double>(report.tokens);
      const LogLikelihood log = lda.log_likelihood();
      look.log_likelihood = log.per_token();
      look.rate = static_cast<double>(log.tokens) * sweeps_since / since;
      look.memory = static_cast<double>(resident());
      look.model_memory = static_cast<double>(lda.memory());
      const Model model = lda.model();
      if (model.words() != 0) {
        if (scored) look.perplexity = complete(Phi(model), held_out->shown, held_out->hidden).perplexity();
        look.words = some_words(model, looks);
      }
      ++looks;
      since = waited = 0;
      sweeps_since = 0;
      if (watching.looked) watching.looked(look);
    }
    if (checkpoints != nullptr && options.keep_every != 0 && (sweep % options.keep_every == 0 || last)) {
      checkpoints->write(lda.keep(), lda.corpus().documents);
    }
  }
}

}  // namespace shoal::learn::topic
