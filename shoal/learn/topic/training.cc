#include "shoal/learn/topic/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "shoal/core/error.h"
#include "shoal/learn/topic/completion.h"
#include "shoal/learn/topic/memory.h"
#include "shoal/learn/topic/top_words.h"

namespace shoal::learn::topic {
namespace {

constexpr unsigned kBurnIn = 100, kOptimiseEvery = 10;

// Those that the vocabulary has, each once.
std::vector<std::uint32_t> words_in(const HeldOut& held_out) {
  std::vector<std::uint32_t> words;
  for (const text::Documents* half : {&held_out.shown, &held_out.hidden}) words.insert(words.end(), half->words().begin(), half->words().end());
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  std::erase(words, kUnknown);
  return words;
}

}  // namespace

HeldOut hold_out(Gather& gather, text::Corpus& corpus, const data::Share& dealt, double share, std::uint64_t seed) {
  const double chance = std::min(share, static_cast<double>(kMostHeldOut) / static_cast<double>(corpus.all_documents));
  text::Documents left = corpus.documents.none_alike();
  std::vector<std::uint32_t> own;  // of each document that is out: its number among all, its length, its words
  std::size_t d = 0;
  for (std::uint64_t document = 0; document < corpus.all_documents; ++document) {
    if (!dealt.holds(document)) continue;
    const std::span<const std::uint32_t> words = corpus.documents[d++];
    const bool out = words.size() > 1 && unit(random_bits(~seed, document)) < chance;
    left.append(out ? std::span<const std::uint32_t>() : words);
    if (!out) continue;
    own.insert(own.end(), {static_cast<std::uint32_t>(document), static_cast<std::uint32_t>(words.size())});
    own.insert(own.end(), words.begin(), words.end());
  }
  left.finish();
  left.ordered = corpus.documents.ordered;
  corpus.documents = std::move(left);

  Bytes bytes(own.size() * sizeof(std::uint32_t));
  if (!own.empty()) std::memcpy(bytes.data(), own.data(), bytes.size());
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_number;
  for (const Bytes& part : gather(std::move(bytes), "documents that are held out")) {
    std::vector<std::uint32_t> numbers(part.size() / sizeof(std::uint32_t));
    if (!numbers.empty()) std::memcpy(numbers.data(), part.data(), numbers.size() * sizeof(std::uint32_t));
    for (std::size_t at = 0; at < numbers.size();) {
      const std::size_t words = at + 2, end = words < numbers.size() ? words + numbers[at + 1] : numbers.size() + 1;
      if (end > numbers.size()) throw Error(Code::mismatch, "documents that are held out are cut short");
      by_number[numbers[at]].assign(numbers.begin() + static_cast<std::ptrdiff_t>(words), numbers.begin() + static_cast<std::ptrdiff_t>(end));
      at = end;
    }
  }
  text::Documents held_out;
  std::vector<std::uint32_t> order;
  for (const auto& [document, words] : by_number) {
    held_out.append(words);
    order.push_back(document);
  }
  held_out.finish();
  if (held_out.tokens() == corpus.all_tokens)
    throw Error(Code::invalid_argument, "leaves no document to learn from", "--test-share", "a smaller share, or 0");
  auto [shown, hidden] = halves(held_out, seed);
  return {std::move(shown), std::move(hidden), std::move(order)};
}

void train(Lda& lda, const HeldOut* held_out, Checkpoints* checkpoints, const TrainingOptions& options, const Watching& watching) {
  const bool scored = held_out != nullptr && held_out->hidden.tokens() != 0;
  const std::vector<std::uint32_t> asked = scored ? words_in(*held_out) : std::vector<std::uint32_t>();
  std::optional<MeanCompletion> mean;
  if (scored) mean.emplace(held_out->shown, held_out->hidden);
  double seconds = 0, since = 0, waited = 0, sent = 0;
  unsigned looks = 0, sweeps_since = 0;
  while (lda.sweeps() < options.sweeps) {
    const unsigned sweep = lda.sweeps() + 1;
    const SweepReport report = lda.sweep([&](double part) {
      if (watching.progressed) watching.progressed(sweep, part);
    });
    seconds += report.seconds;
    since += report.seconds;
    waited += report.waited;
    sent += static_cast<double>(report.sent);
    ++sweeps_since;
    if (options.optimise && sweep >= kBurnIn && sweep % kOptimiseEvery == 0) lda.optimise_prior();
    const bool last = sweep == options.sweeps;
    if (options.look_every != 0 && (sweep % options.look_every == 0 || last)) {
      Look look{.sweep = sweep, .seconds = seconds, .words = {}};
      look.waited = waited / (since * lda.options().threads);
      look.sent = sent / sweeps_since;
      look.changed = report.tokens == 0 ? 0 : static_cast<double>(report.changed) / static_cast<double>(report.tokens);
      const LogLikelihood log = lda.log_likelihood();
      look.log_likelihood = log.per_token();
      look.rate = static_cast<double>(log.tokens) * sweeps_since / since;
      look.memory = static_cast<double>(resident());
      look.model_memory = static_cast<double>(lda.memory());
      look.rows_memory = static_cast<double>(lda.rows_memory());
      // Of the model no more than this takes comes together: who has most of it may not have room for all.
      if (const Model rows = lda.rows_of(asked); scored) {
        const Phi phi(rows);
        const bool late = 2 * sweep >= options.sweeps;
        look.perplexity = (late ? mean->add(phi) : complete(phi, held_out->shown, held_out->hidden)).perplexity();
        if (mean->states() > 1) look.mean_perplexity = mean->foretold().perplexity();
      }
      look.words = lda.words_of(watched(lda.topics(), looks), kWatchedWords);
      ++looks;
      since = waited = sent = 0;
      sweeps_since = 0;
      if (watching.looked) watching.looked(look);
    }
    if (checkpoints != nullptr && options.keep_every != 0 && (sweep % options.keep_every == 0 || last)) {
      checkpoints->write(lda.keep(), lda.corpus().documents, lda.share());
    }
  }
}

}  // namespace shoal::learn::topic
