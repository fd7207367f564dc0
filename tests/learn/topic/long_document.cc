// A document of a million tokens: every sampler draws each of them once, and all counts are what the topics say.
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint32_t kTokens = 1'000'000;

text::Documents one_long_one() {
  std::vector<std::uint32_t> document(kTokens);
  for (std::uint32_t i = 0; i < kTokens; ++i) document[i] = random_words(3, 0, i, 0)[0] % 500;
  return documents_of({{1, 2, 3}, document, {4}});
}

TEST(LongDocument, IsDrawnByEverySampler) {
  const text::Documents documents = one_long_one();
  for (const SamplerKind sampler :
       {SamplerKind::exact, SamplerKind::lightlda, SamplerKind::warplda, SamplerKind::xy, SamplerKind::gibbs}) {
    SCOPED_TRACE("sampler " + std::to_string(static_cast<int>(sampler)));
    Alone alone({sampler}, documents, 500, {{0.1, 0.2, 0.3, 0.4, 0.5}, 0.01});
    EXPECT_EQ(alone.sweep(0).tokens, documents.tokens());
    alone.expect_counts();
  }
}

// As many topics as make the exact sampler lay the document's table out by topic, where an entry can count all of its tokens and where it cannot.
TEST(LongDocument, IsDrawnByTopic) {
  const text::Documents documents = one_long_one();
  for (const std::uint32_t topics : {1000u, 20'000u}) {
    SCOPED_TRACE(topics);
    Alone alone({}, documents, 500, {std::vector<double>(topics, 0.01), 0.01});
    EXPECT_EQ(alone.block().first_long != UINT32_MAX, topics == 20'000);
    for (std::uint64_t sweep = 0; sweep < 2; ++sweep) EXPECT_EQ(alone.sweep(sweep).tokens, documents.tokens());
    alone.expect_counts();
  }
}

// So many topics that an entry of the document's table counts at most 4,095 tokens, and all tokens have one of two topics: these have many entries.
TEST(LongDocument, OfFewTopicsAmongAMillion) {
  const text::Documents documents = one_long_one();
  for (const SamplerKind sampler : {SamplerKind::exact, SamplerKind::lightlda, SamplerKind::warplda}) {
    SCOPED_TRACE("sampler " + std::to_string(static_cast<int>(sampler)));
    Alone alone({sampler}, documents, 500, {std::vector<double>(1 << 20, 1e-6), 0.01}, {.begin_topics = 2});
    EXPECT_EQ(alone.sweep(0).tokens, documents.tokens());
    alone.expect_counts();
  }
}

}  // namespace
}  // namespace shoal::learn::topic
