// What a model's counts say, of all members: how likely it is, which prior they speak for, the model itself.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/learn/topic/lda_worker.h"
#include "shoal/learn/topic/packed_slices.h"
#include "shoal/learn/topic/page.h"
#include "shoal/learn/topic/prior.h"
#include "shoal/learn/topic/top_words.h"

namespace shoal::learn::topic {
namespace {

template <class Number>
Bytes bytes_of(const std::vector<Number>& numbers) {
  Bytes bytes(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

template <class Number>
std::vector<Number> numbers_of(const Bytes& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace

std::vector<std::uint64_t> Lda::totals() {
  std::vector<std::int64_t> own(topics_ + std::size_t{1});
  each_own_slice([&](std::uint32_t, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) {
      for (const auto& [topic, count] : slice.row(place)) own[topic] += count;
    }
  });
  topic_sums_.sum(own);
  return std::vector<std::uint64_t>(own.begin(), own.end() - 1);
}

std::vector<Topic> Lda::largest_topics(std::size_t most) { return largest(totals(), most); }

LogLikelihood Lda::log_likelihood() {
  const Likelihood likelihood(prior_, static_cast<std::uint32_t>(slicing_.words.size()));
  LogLikelihood own;
  each_own_slice([&](std::uint32_t, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) likelihood.add_row(slice.row(place), own);
  });
  each_document([&](std::size_t, std::span<const TopicCount> counts) { likelihood.add_document(counts, own); });
  const std::vector<double> sums = part_sums_.sum({own.documents, own.words, static_cast<double>(corpus_.documents.tokens())});
  LogLikelihood all;
  likelihood.add_totals(totals(), all);
  all.documents = sums[0];
  all.words = sums[1];
  if (before_ != nullptr) {
    LogLikelihood under;
    for (std::uint32_t word = 0; word < before_->words(); ++word) likelihood.add_row((*before_)[word], under);
    likelihood.add_totals(before_->totals, under);
    all.words -= under.words;
    all.topics -= under.topics;
  }
  all.tokens = static_cast<std::uint64_t>(sums[2]);
  return all;
}

void Lda::optimise_prior() {
  PriorEvidence evidence(topics_);
  each_own_slice([&](std::uint32_t, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) evidence.add_row(slice.row(place));
  });
  each_document([&](std::size_t, std::span<const TopicCount> counts) { evidence.add_document(counts); });
  const std::vector<std::uint64_t> counted = totals();
  const std::vector<std::uint64_t> numbers = evidence.numbers();
  const std::vector<Bytes> all = gather_(bytes_of(numbers), "counts for the prior");
  // Rank 0 decides; what it found is everybody's, bit by bit.
  std::vector<std::int64_t> decided(topics_ + std::size_t{1});
  if (transport_.rank() == 0) {
    for (net::Rank rank = 1; rank < transport_.size(); ++rank) {
      evidence.add_numbers(numbers_of<std::uint64_t>(all[rank]));
    }
    const Prior better = optimised(prior_, evidence, counted, static_cast<std::uint32_t>(slicing_.words.size()), options_.alpha_form);
    std::ranges::transform(better.alpha, decided.begin(), [](double alpha) { return std::bit_cast<std::int64_t>(alpha); });
    decided.back() = std::bit_cast<std::int64_t>(better.beta);
  }
  topic_sums_.sum(decided);
  for (Topic topic = 0; topic < topics_; ++topic) prior_.alpha[topic] = std::bit_cast<double>(decided[topic]);
  prior_.beta = std::bit_cast<double>(decided.back());
}

std::size_t Lda::rows_memory() {
  std::size_t bytes = 0;
  each_slice([&](std::uint32_t, const Slice& slice) { bytes += slice.memory(); });
  return bytes;
}

std::size_t Lda::memory() {
  std::size_t bytes = rows_memory();
  for (const auto& worker : workers_) bytes += worker->blocks.memory() + worker->sampler->memory() + worker->totals->memory();
  return bytes;
}

Model Lda::model() {
  PackedSlices own;
  each_own_slice([&](std::uint32_t number, const Slice& slice) { own.append(number, slice); });
  return gathered(own.take(), totals());
}

Model Lda::rows_of(std::span<const std::uint32_t> words) {
  std::vector<bool> asked(slicing_.words.size());
  const std::vector<std::uint32_t> named = transport_.rank() == 0 ? std::vector<std::uint32_t>(words.begin(), words.end()) : std::vector<std::uint32_t>();
  const std::vector<Bytes> said = gather_.on_all(bytes_of(named), "words that are asked for");
  for (const std::uint32_t word : numbers_of<std::uint32_t>(said.front())) {
    if (word < asked.size()) asked[word] = true;
  }
  PackedSlices own;
  each_own_slice([&](std::uint32_t number, const Slice& slice) {
    Slice part(slice.words());
    bool some = false;
    for (std::uint32_t place = 0; place < slice.words(); ++place) {
      if (!asked[slicing_.word(number, place)]) continue;
      part.store(place, slice.row(place));
      some = true;
    }
    if (some) own.append(number, part);
  });
  return gathered(own.take(), totals());
}

std::vector<std::vector<std::uint32_t>> Lda::words_of(std::span<const Topic> topics, std::size_t most) {
  TopWords own(topics_, topics, most);
  each_own_slice([&](std::uint32_t number, const Slice& slice) {
    for (std::uint32_t place = 0; place < slice.words(); ++place) own.add(slicing_.word(number, place), slice.row(place));
  });
  std::vector<std::uint32_t> best;  // place among the topics, word, count of each
  const auto found = own.take();
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    for (const auto& [word, count] : found[i]) best.insert(best.end(), {i, word, count});
  }
  TopWords together(topics_, topics, most);
  for (const Bytes& part : gather_(bytes_of(best), "words of topics")) {
    const std::vector<std::uint32_t> theirs = numbers_of<std::uint32_t>(part);
    for (std::size_t at = 0; at + 2 < theirs.size(); at += 3) {
      if (theirs[at] >= topics.size() || theirs[at + 1] >= slicing_.words.size())
        throw Error(Code::mismatch, "a member told words of topics that are none", "", "run the same program on all members");
      const TopicCount count{topics[theirs[at]], theirs[at + 2]};
      together.add(theirs[at + 1], {&count, 1});
    }
  }
  if (transport_.rank() != 0) return {};
  std::vector<std::vector<std::uint32_t>> words;
  for (const auto& of_topic : together.take()) {
    words.emplace_back();
    for (const auto& [word, count] : of_topic) words.back().push_back(word);
  }
  return words;
}

Model Lda::gathered(Bytes own, std::vector<std::uint64_t> totals) {
  const std::vector<Bytes> all = gather_(std::move(own), "parts of the model");
  Model model{.prior = prior_, .vocabulary = {}, .offsets = {0}, .counts = {}, .totals = std::move(totals)};
  if (transport_.rank() != 0) {
    model.totals.assign(topics_, 0);
    return model;
  }
  // Twice through the parts, first for the rows' lengths: the model is the only thing that is there as a whole.
  const auto each_part = [&](const auto& visit) {
    for (const Bytes& part : all) {
      for (SliceReader reader(part, slicing_, topics_); !reader.done();) {
        std::uint32_t number = 0;
        const std::unique_ptr<Slice> slice = reader.next(number);
        for (std::uint32_t place = 0; place < slice->words(); ++place) visit(slicing_.word(number, place), slice->row(place));
      }
    }
  };
  model.vocabulary = corpus_.vocabulary;
  model.offsets.resize(slicing_.words.size() + 1);
  each_part([&](std::uint32_t word, std::span<const TopicCount> row) { model.offsets[word + std::size_t{1}] = row.size(); });
  std::partial_sum(model.offsets.begin(), model.offsets.end(), model.offsets.begin());
  model.counts.resize(model.offsets.back());
  each_part([&](std::uint32_t word, std::span<const TopicCount> row) {
    const auto begin = model.counts.begin() + static_cast<std::ptrdiff_t>(model.offsets[word]);
    std::ranges::copy(row, begin);
    std::sort(begin, begin + static_cast<std::ptrdiff_t>(row.size()), [](const TopicCount& a, const TopicCount& b) { return a.topic < b.topic; });
  });
  return model;
}

}  // namespace shoal::learn::topic
