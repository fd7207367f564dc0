// More documents into a model: what it has counted stays, and new documents' counts are those of their topics, on any number of members and threads.
#include "shoal/learn/topic/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/core/seed.h"
#include "shoal/data/read.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kWords = 40, kTopics = 4;

data::Names words(std::uint32_t count) {
  data::Names names;
  for (std::uint32_t word = 0; word < count; ++word) names.number("w" + std::to_string(word));
  return names;
}

// Every document is about one of four subjects, each with 10 words of its own.
text::Corpus drawn_share(std::uint64_t seed, std::uint32_t documents, std::uint32_t vocabulary, const data::Share& share) {
  text::Corpus corpus;
  corpus.vocabulary = words(vocabulary);
  corpus.frequencies.resize(vocabulary);
  for (std::uint32_t d = 0; d < documents; ++d) {
    std::vector<std::uint32_t> document(1 + random_words(seed, d, 0, 0)[0] % 30);
    for (std::uint32_t i = 0; i < document.size(); ++i) document[i] = d % kTopics * 10 + random_words(seed, d, i, 1)[0] % 10;
    if (vocabulary > kWords) document.push_back(kWords);  // a word that the model has not
    for (const std::uint32_t word : document) ++corpus.frequencies[word];
    corpus.all_tokens += document.size();
    ++corpus.all_documents;
    if (share.holds(d)) corpus.documents.append(document);
  }
  corpus.documents.finish();
  return corpus;
}

// Four topics that are the subjects.
Model before() {
  Model model;
  model.prior = {std::vector<double>(kTopics, 0.1), 0.01};
  model.vocabulary = words(kWords);
  model.totals.assign(kTopics, 1000);
  for (std::uint32_t word = 0; word < kWords; ++word) {
    model.counts.push_back({word / 10, 100});
    model.offsets.push_back(model.counts.size());
  }
  return model;
}

class Update : public testing::TestWithParam<std::pair<net::Rank, std::uint32_t>> {};

TEST_P(Update, AddsTheCountsOfNewDocumentsAndKeepsTheOthers) {
  const auto [members, threads] = GetParam();
  const Model under = with_words(before(), words(kWords + 1));
  std::vector<Kept> kept(members);
  Model after;
  auto jobs = net::join_all(members);
  net::each(members, [&](net::Rank rank) {
    const text::Corpus corpus = drawn_share(3, 90, kWords + 1, {rank, members});
    const Kept start = begun(under, corpus.documents, 5, rank, threads);
    Lda lda(jobs[rank]->transport(), corpus, {.prior = under.prior, .seed = 5, .threads = threads}, &start, &under);
    for (int sweep = 0; sweep < 5; ++sweep) lda.sweep();
    Model model = lda.model();
    if (rank == 0) after = std::move(model);
    kept[rank] = lda.keep();
  });
  net::leave_all(jobs);

  std::vector<std::vector<std::uint32_t>> counts(kWords + 1, std::vector<std::uint32_t>(kTopics));
  for (std::uint32_t word = 0; word < kWords; ++word) counts[word][word / 10] = 100;
  std::uint64_t own_subject = 0, tokens = 0;
  for (net::Rank rank = 0; rank < members; ++rank) {
    const text::Corpus corpus = drawn_share(3, 90, kWords + 1, {rank, members});
    for (std::size_t i = 0; i < corpus.documents.tokens(); ++i) {
      const std::uint32_t word = corpus.documents.words()[i];
      ++counts[word][kept[rank].topics[i]];
      own_subject += word < kWords && word / 10 == kept[rank].topics[i];
      tokens += word < kWords;
    }
  }
  ASSERT_EQ(after.words(), kWords + 1);
  std::vector<std::uint64_t> totals(kTopics);
  for (std::uint32_t word = 0; word <= kWords; ++word) {
    std::vector<TopicCount> row;
    for (Topic topic = 0; topic < kTopics; ++topic) {
      if (counts[word][topic] != 0) row.push_back({topic, counts[word][topic]});
      totals[topic] += counts[word][topic];
    }
    EXPECT_TRUE(std::ranges::equal(after[word], row)) << "word " << word;
  }
  EXPECT_EQ(after.totals, totals);
  EXPECT_GT(own_subject, tokens * 99 / 100);  // with the counts of before, which name the subjects: alone they would be in any order
}

INSTANTIATE_TEST_SUITE_P(Members, Update, testing::Values(std::pair{1, 1}, std::pair{1, 3}, std::pair{3, 2}));

TEST(UpdateStart, IsTheSameOnAnyNumberOfThreads) {
  const text::Corpus corpus = drawn_share(3, 700, kWords, {});
  const Kept one = begun(before(), corpus.documents, 5, 0, 1), other = begun(before(), corpus.documents, 5, 0, 3);
  EXPECT_EQ(one.topics, other.topics);
}

TEST(UpdateWords, ComeBehindThoseOfTheModel) {
  const Model more = with_words(before(), words(kWords + 2));
  EXPECT_EQ(more.words(), kWords + 2);
  EXPECT_TRUE(more[kWords + 1].empty());
  data::Names others;
  others.number("elsewhere");
  EXPECT_THROW(with_words(before(), others), Error);
}

}  // namespace
}  // namespace shoal::learn::topic
