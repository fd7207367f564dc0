// One worker alone with a small corpus, and what holds for every sampler: its counts are what the topics say, and it is in each state as
// often as the posterior has it. For the tests of samplers; threads: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/core/seed.h"
#include "shoal/learn/topic/exact.h"
#include "shoal/learn/topic/likelihood.h"
#include "shoal/learn/topic/samplers.h"
#include "shoal/table/tables.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {

inline text::Documents documents_of(const std::vector<std::vector<std::uint32_t>>& lists) {
  text::Documents documents;
  for (const auto& list : lists) documents.append(list);
  documents.finish();
  return documents;
}

inline text::Documents random_documents(std::size_t count, std::uint32_t words, std::uint32_t longest, std::uint64_t seed) {
  text::Documents documents;
  for (std::uint32_t d = 0; d < count; ++d) {
    std::vector<std::uint32_t> document(random_words(seed, d, 0, 0)[0] % longest);
    for (std::uint32_t i = 0; i < document.size(); ++i) {  // few words are frequent
      const double u = uniform(seed, d, i, 1);
      document[i] = std::min(words - 1, static_cast<std::uint32_t>(words * u * u * u));
    }
    documents.append(document);
  }
  documents.finish();
  return documents;
}

inline std::vector<std::uint64_t> frequencies_of(const text::Documents& documents, std::uint32_t words) {
  std::vector<std::uint64_t> frequencies(words);
  for (const std::uint32_t word : documents.words()) ++frequencies[word];
  return frequencies;
}

// One worker with everything: a block, one slice, totals that nobody else changes. Tokens begin with any of the first `begin_topics`; 0: of all.
// one_each: an entry of a document's table counts one token only, as if documents of 15 tokens were too long for more. by_topic: the exact sampler
// lays out by topic every table that has room for it.
struct Beginning {
  std::uint32_t begin_topics = 0;
  bool one_each = false;
  bool by_topic = false;
};
class Alone {
 public:
  Alone(const Sampling& sampling, const text::Documents& documents, std::uint32_t words, Prior prior, const Beginning& beginning = {})
      : prior_(std::move(prior)), topics_(static_cast<std::uint32_t>(prior_.alpha.size())), jobs_(net::join_all(1)), tables_(jobs_[0]->transport()),
        slicing_(frequencies_of(documents, words), topics_, 1), block_(documents, 0, documents.size(), slicing_, topics_), slice_(words),
        sampler_(beginning.by_topic ? std::make_unique<Exact>(topics_, LayOut::always) : make_sampler(sampling, topics_, block_)) {
    if (beginning.one_each) {
      block_.shift = 1;
      block_.first_long = 0;
    }
    const std::uint32_t begun = beginning.begin_topics == 0 ? topics_ : beginning.begin_topics;
    for (std::uint32_t token = 0; token < block_.tokens(); ++token) block_.topics[token] = static_cast<Topic>(random_bits(7, token) % begun);
    block_.count();
    block_.add_to(slice_, 0);
    std::vector<std::int64_t> own(topics_);
    for (const Topic topic : block_.topics) ++own[topic];
    totals_.emplace(tables_.worker(), own, 0);
  }
  ~Alone() {
    totals_.reset();
    tables_.leave();
  }

  Drawn sweep(std::uint64_t number) {
    const double beta_sum = prior_.beta * static_cast<double>(slicing_.words.size());
    Drawn drawn = sampler_->begin_round({block_, *totals_, prior_, beta_sum, random_bits(4, number)});
    return drawn += sampler_->sample({block_, 0, slice_, *totals_, prior_, beta_sum, random_bits(3, number)});
  }
  const Block& block() const { return block_; }
  LogLikelihood log_likelihood() const {
    const Likelihood likelihood(prior_, slice_.words());
    LogLikelihood log;
    std::vector<TopicCount> counts;
    for (std::uint32_t d = 0; d < block_.documents(); ++d) {
      block_.counts_of(d, counts);
      likelihood.add_document(counts, log);
    }
    for (std::uint32_t place = 0; place < slice_.words(); ++place) likelihood.add_row(slice_.row(place), log);
    likelihood.add_totals(std::vector<std::uint64_t>(totals_->counts().begin(), totals_->counts().end()), log);
    log.tokens = block_.tokens();
    return log;
  }

  void expect_counts() const {
    Block counted = block_of_same_topics();
    std::vector<TopicCount> kept, made;
    for (std::uint32_t d = 0; d < block_.documents(); ++d) {
      block_.counts_of(d, kept);
      counted.counts_of(d, made);
      std::ranges::sort(kept, {}, &TopicCount::topic);
      std::ranges::sort(made, {}, &TopicCount::topic);
      ASSERT_EQ(kept, made) << "document " << d;
    }
    Slice rows(slice_.words());
    counted.add_to(rows, 0);
    std::vector<std::int64_t> totals(topics_);
    for (std::uint32_t place = 0; place < rows.words(); ++place) {
      std::vector<TopicCount> row(slice_.row(place).begin(), slice_.row(place).end());
      std::ranges::sort(row, {}, &TopicCount::topic);
      ASSERT_TRUE(std::ranges::equal(row, rows.row(place))) << "word " << slicing_.word(0, place);
      for (const auto& [topic, count] : row) totals[topic] += count;
    }
    EXPECT_TRUE(std::ranges::equal(totals, totals_->counts()));
  }

 private:
  Block block_of_same_topics() const {
    Block counted(documents_again(), 0, block_.documents(), slicing_, topics_);
    counted.topics = block_.topics;
    counted.count();
    return counted;
  }
  text::Documents documents_again() const {  // from the block alone
    std::vector<std::uint32_t> words(block_.tokens());
    const auto runs = block_.runs_of(0);
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
      for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token) words[block_.positions[token]] = slicing_.word(0, runs[i].place);
    }
    std::map<std::uint32_t, std::size_t> document_at;
    for (std::uint32_t d = 0; d < block_.documents(); ++d) document_at[block_.first_line[d]] = d;
    std::vector<std::uint64_t> lengths(block_.documents());
    for (const std::uint32_t line : block_.lines) ++lengths[document_at.at(line)];
    text::Documents documents;
    std::size_t begin = 0;
    for (const std::uint64_t length : lengths) {
      documents.append(std::span(words).subspan(begin, length));
      begin += length;
    }
    documents.finish();
    return documents;
  }

  const Prior prior_;
  const std::uint32_t topics_;
  std::vector<std::unique_ptr<net::Job>> jobs_;
  table::Tables tables_;
  const Slicing slicing_;
  Block block_;
  Slice slice_;
  std::unique_ptr<Sampler> sampler_;
  std::optional<Totals> totals_;
};

// All states of a tiny corpus, and how often the sampler is in each.
inline void expect_posterior(const Sampling& sampling, const std::vector<std::vector<std::uint32_t>>& lists, std::uint32_t words, const Prior& prior,
                             double most, const Beginning& beginning = {}) {
  const text::Documents documents = documents_of(lists);
  const auto topics = static_cast<std::uint32_t>(prior.alpha.size());
  const std::size_t tokens = documents.tokens();
  std::size_t states = 1;
  for (std::size_t i = 0; i < tokens; ++i) states *= topics;
  const Likelihood likelihood(prior, words);
  TopicCounter counter;
  std::vector<double> probability(states);
  double sum = 0;
  for (std::size_t state = 0; state < states; ++state) {
    std::vector<Topic> of(tokens);
    for (std::size_t i = 0, rest = state; i < tokens; ++i, rest /= topics) of[i] = static_cast<Topic>(rest % topics);
    LogLikelihood log;
    std::vector<std::vector<Topic>> by_word(words);
    std::vector<std::uint64_t> totals(topics);
    for (std::size_t i = 0; i < tokens; ++i) {
      by_word[documents.words()[i]].push_back(of[i]);
      ++totals[of[i]];
    }
    for (std::size_t d = 0; d < documents.size(); ++d) {
      likelihood.add_document(counter(std::span(of).subspan(documents.offsets[d], documents[d].size())), log);
    }
    for (const auto& of_word : by_word) likelihood.add_row(counter(of_word), log);
    likelihood.add_totals(totals, log);
    sum += probability[state] = std::exp(log.total());
  }
  Alone alone(sampling, documents, words, prior, beginning);
  constexpr std::size_t kSamples = 40'000, kApart = 4;
  std::vector<double> seen(states);
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    for (std::size_t i = 0; i < kApart; ++i) alone.sweep(sample * kApart + i);
    std::size_t state = 0, weight = 1;
    std::vector<Topic> of(tokens);
    for (std::uint32_t token = 0; token < tokens; ++token) of[alone.block().positions[token]] = alone.block().topics[token];
    for (std::size_t i = 0; i < tokens; ++i, weight *= topics) state += of[i] * weight;
    ++seen[state];
  }
  alone.expect_counts();
  double chi = 0;
  for (std::size_t state = 0; state < states; ++state) {
    const double expected = kSamples * probability[state] / sum;
    chi += (seen[state] - expected) * (seen[state] - expected) / expected;
  }
  EXPECT_LT(chi, most) << "of " << states << " states";
}

}  // namespace shoal::learn::topic
