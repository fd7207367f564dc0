// Goal: tokens get their topics with the probability that the formula of online_start.h gives, one after another, and trees draw by weights.
#include "shoal/learn/topic/online_start.h"

#include <gtest/gtest.h>

#include "shoal/learn/topic/weight_tree.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

// The oracle: all topics that the tokens of a tiny corpus can come to, each with the product of its draws' probabilities, the counts made anew before
// each of them.
TEST(OnlineStart, DrawsEachTokenAfterThoseBeforeIt) {
  const text::Documents documents = documents_of({{0, 1, 0, 2}, {0, 2, 2}});
  constexpr std::uint32_t kWords = 3, kTopics = 3;
  constexpr std::size_t kTokens = 7, kStates = 2187, kSamples = 60'000;
  const Prior prior{{0.2, 0.5, 0.9}, 0.3};
  const double beta_sum = prior.beta * kWords;
  const Slicing slicing(frequencies_of(documents, kWords), kTopics, 1);
  Block begun(documents, 0, documents.size(), slicing, kTopics);
  begun.topics.assign(kTokens, kNoTopic);
  std::vector<std::uint32_t> words(kTokens), of_document(kTokens);  // in the order of the draws
  const auto runs = begun.runs_of(0);
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    for (std::uint32_t token = runs[i].begin; token < runs[i + 1].begin; ++token) {
      words[token] = slicing.word(0, runs[i].place);
      of_document[token] = begun.positions[token] < 4 ? 0 : 1;
    }
  }
  std::vector<double> probability(kStates, 1);
  for (std::size_t state = 0; state < kStates; ++state) {
    std::vector<Topic> topics(kTokens);
    for (std::size_t i = 0, rest = state; i < kTokens; ++i, rest /= kTopics) topics[i] = static_cast<Topic>(rest % kTopics);
    for (std::size_t i = 0; i < kTokens; ++i) {
      double own = 0, sum = 0;
      for (Topic k = 0; k < kTopics; ++k) {
        double in_document = prior.alpha[k], of_word = prior.beta, of_topic = beta_sum;
        for (std::size_t before = 0; before < i; ++before) {
          if (topics[before] != k) continue;
          in_document += of_document[before] == of_document[i];
          of_word += words[before] == words[i];
          ++of_topic;
        }
        const double weight = in_document * of_word / of_topic;
        sum += weight;
        if (k == topics[i]) own = weight;
      }
      probability[state] *= own / sum;
    }
  }
  auto jobs = net::join_all(1);
  std::vector<double> seen(kStates);
  {
    table::Tables tables(jobs[0]->transport());
    const Totals none(tables.worker(), std::vector<std::int64_t>(kTopics), 0);
    OnlineStart start(kTopics);
    for (std::size_t sample = 0; sample < kSamples; ++sample) {
      begun.topics.assign(kTokens, kNoTopic);
      std::fill_n(begun.tables.data(), begun.tables.size(), 0);
      Slice slice(kWords);
      Totals totals = none;
      const Drawn drawn = start.sample({begun, 0, slice, totals, prior, beta_sum, random_bits(17, sample)});
      ASSERT_EQ(drawn.tokens, kTokens);
      std::size_t state = 0, weight = 1;
      for (std::size_t i = 0; i < kTokens; ++i, weight *= kTopics) state += begun.topics[i] * weight;
      ++seen[state];
      std::vector<std::int64_t> counted(kTopics);
      for (const Topic topic : begun.topics) ++counted[topic];
      ASSERT_TRUE(std::ranges::equal(totals.counts(), counted));
    }
    tables.leave();
  }
  net::leave_all(jobs);
  double chi = 0;
  for (std::size_t state = 0; state < kStates; ++state) {
    const double expected = kSamples * probability[state];
    chi += (seen[state] - expected) * (seen[state] - expected) / expected;
  }
  EXPECT_LT(chi, 2186 + 5 * 66);  // mean and five standard deviations
}

TEST(WeightTree, DrawsByWeightAndNeverWhatHasNone) {
  for (const std::size_t size : {1u, 2u, 5u, 64u, 1000u}) {
    WeightTree tree(size);
    std::vector<double> weights(size);
    for (std::size_t i = 0; i < size; ++i) weights[i] = static_cast<double>(i % 3 == 1 ? 0 : i + 1);
    tree.set_all(weights);
    for (std::size_t i = 0; i < size; i += 7) tree.set(i, weights[i] *= 2);
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (weights[i] > 0) {
        EXPECT_EQ(tree.at(sum), i);
        EXPECT_EQ(tree.at(sum + weights[i] - 0.25), i);
      }
      sum += weights[i];
    }
    EXPECT_EQ(tree.sum(), sum);
    EXPECT_GT(weights[tree.at(sum + 1)], 0);
  }
}

}  // namespace
}  // namespace shoal::learn::topic
