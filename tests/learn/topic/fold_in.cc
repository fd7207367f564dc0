// Goal: fold-in is the fixed point of its formula, in its quick form, too; theta sums to 1; what the model does not know is counted.
#include "shoal/learn/topic/fold_in.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

// The formula, token by token and topic by topic.
std::vector<double> theta_by_formula(const Model& model, const std::vector<std::uint32_t>& words, unsigned passes) {
  const std::size_t topics = model.topics();
  const double sum = model.prior.alpha_sum(), tokens = static_cast<double>(words.size());
  std::vector<double> expected(topics);
  for (Topic k = 0; k < topics; ++k) expected[k] = tokens * model.prior.alpha[k] / sum;
  for (unsigned pass = 0; pass < passes; ++pass) {
    std::vector<double> next(topics);
    for (const std::uint32_t w : words) {
      double whole = 0;
      for (Topic k = 0; k < topics; ++k) whole += (expected[k] + model.prior.alpha[k]) * phi_of(model, w, k);
      for (Topic k = 0; k < topics; ++k) next[k] += (expected[k] + model.prior.alpha[k]) * phi_of(model, w, k) / whole;
    }
    expected = next;
  }
  for (Topic k = 0; k < topics; ++k) expected[k] = (expected[k] + model.prior.alpha[k]) / (tokens + sum);
  return expected;
}

std::vector<double> dense(const Mixture& mixture, const Phi& phi) {
  std::vector<double> theta(phi.topics());
  for (Topic k = 0; k < phi.topics(); ++k) theta[k] = mixture.others * phi.alpha()[k];
  for (const auto [topic, share] : mixture.topics) theta[topic] = share;
  return theta;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Words of topic k are those whose number is k modulo the topics, mostly: a model with something to find.
Model separated(std::uint32_t words, const Prior& prior, std::uint64_t seed) {
  const auto topics = static_cast<std::uint32_t>(prior.alpha.size());
  std::vector<Assigned> documents = random_assignments(400, 60, words, topics, seed);
  for (Assigned& document : documents) {
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      if (i % 8 != 0) document.words[i] -= (document.words[i] % topics + topics - document.topics[i]) % topics;
      if (document.words[i] >= words) document.words[i] += topics;
    }
  }
  return counted(documents, prior, words);
}

class FoldingIn : public testing::Test {
 protected:
  const Prior prior_{{0.1, 0.3, 0.05, 0.2, 0.1}, 0.01};
  const Model model_ = separated(60, prior_, 7);
  const Phi phi_{model_};
};

TEST_F(FoldingIn, is_the_formula_when_it_is_thorough) {
  for (const unsigned passes : {1u, 2u, 7u, 100u}) {
    FoldIn fold_in(phi_, {passes, 0, true});
    Mixture mixture;
    for (const auto& words : {std::vector<std::uint32_t>{3}, {0, 1, 2, 3, 4, 5, 5, 5}, {10, 10, 15, 20, 21, 36, 59}}) {
      fold_in(words, mixture);
      const auto theta = dense(mixture, phi_), wanted = theta_by_formula(model_, words, passes);
      EXPECT_NEAR(sum(theta), 1, 1e-5);
      for (Topic k = 0; k < phi_.topics(); ++k) EXPECT_NEAR(theta[k], wanted[k], 2e-4) << passes << " passes, topic " << k;
    }
  }
}

TEST_F(FoldingIn, the_quick_way_predicts_as_the_thorough_one) {
  FoldIn quick(phi_), thorough(phi_, {100, 0, true});
  Predictive predictive(phi_);
  double by_quick = 0, by_thorough = 0;
  std::size_t tokens = 0;
  for (const Assigned& document : random_assignments(200, 40, 60, 5, 3)) {
    std::vector<std::uint32_t> seen, hidden;
    for (const std::uint32_t w : document.words) (w % 2 == 0 ? seen : hidden).push_back(w);
    Mixture mixture;
    quick(seen, mixture);
    predictive.take(mixture);
    for (const std::uint32_t w : hidden) by_quick += std::log(predictive(w));
    thorough(seen, mixture);
    predictive.take(mixture);
    for (const std::uint32_t w : hidden) by_thorough += std::log(predictive(w));
    tokens += hidden.size();
  }
  EXPECT_NEAR(by_quick / static_cast<double>(tokens), by_thorough / static_cast<double>(tokens), 0.005);
}

TEST_F(FoldingIn, predicts_by_theta_and_phi) {
  const std::vector<std::uint32_t> words{1, 6, 11, 12};
  FoldIn fold_in(phi_);
  Predictive predictive(phi_);
  Mixture mixture;
  for (const std::size_t most : {5u, 2u, 1u, 0u}) {
    fold_in(words, mixture);
    mixture.keep_largest(phi_, 0, most);
    const auto theta = dense(mixture, phi_);
    EXPECT_NEAR(sum(theta), 1, 1e-6);
    predictive.take(mixture);
    for (std::uint32_t w = 0; w < phi_.words(); ++w) {
      double wanted = 0;
      for (Topic k = 0; k < phi_.topics(); ++k) wanted += theta[k] * phi_of(model_, w, k);
      EXPECT_NEAR(predictive(w), wanted, 1e-6 * wanted);
    }
  }
}

TEST_F(FoldingIn, finds_the_topic_of_words_that_are_its_own) {
  FoldIn fold_in(phi_);
  Mixture mixture;
  for (Topic k = 0; k < 5; ++k) {
    fold_in(std::vector<std::uint32_t>{k, k + 5, k + 10, k + 15, k + 20, k + 25}, mixture);
    mixture.keep_largest(phi_, 0, 1);
    ASSERT_EQ(mixture.topics.size(), 1u);
    EXPECT_EQ(mixture.topics[0].topic, k);
    EXPECT_GT(mixture.topics[0].share, 0.6);
  }
}

TEST_F(FoldingIn, counts_what_the_model_does_not_know) {
  FoldIn fold_in(phi_);
  Mixture known, with_unknown;
  fold_in(std::vector<std::uint32_t>{2, 4, 4}, known);
  fold_in(std::vector<std::uint32_t>{kUnknown, 2, 4, 60, 4}, with_unknown);
  EXPECT_EQ(with_unknown.tokens, 3u);
  EXPECT_EQ(with_unknown.unknown, 2u);
  EXPECT_EQ(dense(with_unknown, phi_), dense(known, phi_));
}

TEST_F(FoldingIn, a_document_without_words_has_the_topics_of_the_prior) {
  FoldIn fold_in(phi_);
  Mixture mixture;
  fold_in(std::vector<std::uint32_t>{1, 2, 3}, mixture);  // leaves nothing behind
  fold_in({}, mixture);
  const auto theta = dense(mixture, phi_);
  for (Topic k = 0; k < 5; ++k) EXPECT_NEAR(theta[k], prior_.alpha[k] / prior_.alpha_sum(), 1e-12);
}

TEST_F(FoldingIn, one_topic_and_words_that_no_topic_ever_had) {
  const Prior one{{0.5}, 0.1};
  Model model = counted(random_assignments(3, 9, 4, 1, 1), one, 6);  // words 4 and 5 never come
  const Phi phi(model);
  FoldIn fold_in(phi);
  Mixture mixture;
  fold_in(std::vector<std::uint32_t>{0, 4, 5}, mixture);
  EXPECT_NEAR(sum(dense(mixture, phi)), 1, 1e-5);
  fold_in(std::vector<std::uint32_t>{5}, mixture);
  EXPECT_NEAR(sum(dense(mixture, phi)), 1, 1e-5);
}

}  // namespace
}  // namespace shoal::learn::topic
