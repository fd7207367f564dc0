// Every sampler draws from the distribution that the model has, and keeps its counts.
#include "shoal/learn/topic/samplers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

struct Named {
  const char* name;
  SamplerKind kind;
};
const std::vector<Named> kAll{
    {"exact", SamplerKind::exact}, {"lightlda", SamplerKind::lightlda},
    {"warplda", SamplerKind::warplda}, {"xy", SamplerKind::xy}, {"gibbs", SamplerKind::gibbs}};

std::string name_of(const testing::TestParamInfo<Named>& param) { return param.param.name; }

class Samplers : public testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(All, Samplers, testing::ValuesIn(kAll), name_of);

class Posterior : public testing::TestWithParam<Named> {};
const std::vector<Named> kOfThePosterior{
    {"exact", SamplerKind::exact}, {"lightlda", SamplerKind::lightlda}, {"xy", SamplerKind::xy}, {"gibbs", SamplerKind::gibbs}};
INSTANTIATE_TEST_SUITE_P(But, Posterior, testing::ValuesIn(kOfThePosterior), name_of);

TEST_P(Posterior, IsDrawnFrom) {
  // Samples four sweeps apart still know each other a little: the bound is that of independent ones, half as much again.
  expect_posterior({GetParam().kind}, {{0, 1, 0}, {1, 2, 2}, {0, 2}}, 3, {{0.5, 0.3}, 0.4}, 1.5 * 255);
  expect_posterior({GetParam().kind}, {{0, 0}, {1, 0}, {2, 1}}, 3, {{0.2, 0.6, 0.1}, 0.1}, 1.5 * 728);
  // Rows of less than half of the topics.
  expect_posterior({GetParam().kind}, {{0, 1}, {1, 0}}, 2, {{0.2, 0.6, 0.1, 0.3, 0.3}, 0.1}, 1.5 * 624);
}

// A topic may have several entries in a long document's table: here one for each token.
TEST_P(Posterior, IsDrawnFromWhereEntriesAreFull) {
  const Beginning one_each{.one_each = true};
  expect_posterior({GetParam().kind}, {{0, 1, 0}, {1, 2, 2}, {0, 2}}, 3, {{0.5, 0.3}, 0.4}, 1.5 * 255, one_each);
  expect_posterior({GetParam().kind}, {{0, 0}, {1, 0}, {2, 1}}, 3, {{0.2, 0.6, 0.1}, 0.1}, 1.5 * 728, one_each);
}

// Where documents' tables are laid out by topic: here all are, for a line has room.
TEST(PosteriorByTopic, IsDrawnFrom) {
  for (const bool one_each : {false, true}) {
    const Beginning by_topic{.one_each = one_each, .by_topic = true};
    expect_posterior({}, {{0, 1, 0}, {1, 2, 2}, {0, 2}}, 3, {{0.5, 0.3}, 0.4}, 1.5 * 255, by_topic);
    expect_posterior({}, {{0, 0}, {1, 0}, {2, 1}}, 3, {{0.2, 0.6, 0.1}, 0.1}, 1.5 * 728, by_topic);
    expect_posterior({}, {{0, 1}, {1, 0}}, 2, {{0.2, 0.6, 0.1, 0.3, 0.3}, 0.1}, 1.5 * 624, by_topic);
  }
}

// With so many topics an entry counts to 2,047.
TEST_P(Samplers, KeepCountsOfLongDocuments) {
  if (GetParam().kind == SamplerKind::gibbs) return;  // O(topics) a token
  constexpr std::uint32_t topics = (1u << 20) + 3;
  std::vector<std::vector<std::uint32_t>> lists{std::vector<std::uint32_t>(10'000, 0), {0, 1, 1, 2}, std::vector<std::uint32_t>(3000, 1)};
  for (std::uint32_t i = 0; i < 1000; ++i) lists[0][i] = i % 50;
  Alone alone({GetParam().kind}, documents_of(lists), 50, {std::vector<double>(topics, 5.0 / topics), 0.01}, {.begin_topics = 3});
  EXPECT_EQ(alone.block().most(), 2047u);
  for (std::uint64_t sweep = 0; sweep < 4; ++sweep) {
    alone.expect_counts();
    alone.sweep(sweep);
  }
  alone.expect_counts();
}

TEST_P(Samplers, KeepTheirCounts) {
  for (const std::uint32_t topics : {1u, 2u, 15u, 100u, 1000u, 70'000u}) {
    if (topics > 1000 && GetParam().kind == SamplerKind::gibbs) continue;  // O(topics) a token
    SCOPED_TRACE(topics);
    const auto documents = random_documents(topics > 1000 ? 30 : 300, 200, 90, topics);
    Alone alone({GetParam().kind}, documents, 200, {std::vector<double>(topics, 5.0 / topics), 0.01});
    for (std::uint64_t sweep = 0; sweep < 6; ++sweep) {
      const Drawn drawn = alone.sweep(sweep);
      EXPECT_EQ(drawn.tokens, alone.block().tokens());
      alone.expect_counts();
    }
  }
}

// A word that is most of the text, and few topics: sums in floating point must not lose counts. With 100 topics is where a prototype, which took counts
// back from sums, had rows wrong after 15 sweeps.
TEST_P(Samplers, KeepCountsOfVeryFrequentWords) {
  std::vector<std::vector<std::uint32_t>> lists;
  for (std::uint32_t d = 0; d < 40; ++d) lists.push_back(std::vector<std::uint32_t>(5000, d % 3 == 0 ? d % 5 : 0));
  for (const std::uint32_t topics : {3u, 100u}) {
    SCOPED_TRACE(topics);
    Alone alone({GetParam().kind}, documents_of(lists), 5, {std::vector<double>(topics, 3.0 / topics), 0.01},
                {.begin_topics = 3});
    for (std::uint64_t sweep = 0; sweep < (topics == 3 ? 5 : 15); ++sweep) {
      if (sweep % 5 == 0) alone.expect_counts();
      alone.sweep(sweep);
    }
    alone.expect_counts();
  }
}

// WarpLDA, whose counts are a pass old, comes near the log-likelihood that exact draws come to: documents of 2 subjects of 10, with 40 words each.
TEST(WarpLda, LearnsAlmostAsMuchAsExactDraws) {
  std::vector<std::vector<std::uint32_t>> lists(400);
  for (std::uint32_t d = 0; d < lists.size(); ++d) {
    for (std::uint32_t i = 0; i < 60; ++i) {
      const auto drawn = random_words(1, d, i, 0);
      const std::uint32_t subject = drawn[0] % 2 == 0 ? d % 10 : d / 10 % 10;
      lists[d].push_back(subject * 40 + std::min(drawn[1] % 40, drawn[2] % 40));
    }
  }
  const text::Documents documents = documents_of(lists);
  const auto learnt = [&](const Sampling& sampling, unsigned sweeps) {
    Alone alone(sampling, documents, 400, {std::vector<double>(10, 0.1), 0.05});
    const double begun = alone.log_likelihood().per_token();
    for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) alone.sweep(sweep);
    return alone.log_likelihood().per_token() - begun;
  };
  const double exact = learnt({SamplerKind::exact}, 200);
  EXPECT_GT(learnt({SamplerKind::warplda}, 400), 0.95 * exact);
  EXPECT_GT(learnt({SamplerKind::warplda, 4}, 200), 0.95 * exact);
}

TEST(SamplerNames, AreToldToWhoAsksForAnother) {
  EXPECT_EQ(sampler_of("auto"), SamplerKind::exact);
  for (const auto& [name, kind] : kAll) EXPECT_EQ(sampler_of(name), kind);
  try {
    sampler_of("alias");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "there is no sampler \"alias\" (there are auto, exact, lightlda, warplda, xy, gibbs)");
  }
}

}  // namespace
}  // namespace shoal::learn::topic
