// Goal: the fixed point is the maximum that a slow search finds; evidence adds up.
#include "shoal/learn/topic/prior.h"

#include <gmock/gmock.h>

#include <cmath>
#include <utility>

#include "shoal/learn/topic/likelihood.h"
#include "shoal/learn/topic/training.h"
#include "tests/learn/topic/handmade.h"
#include "tests/learn/topic/trained.h"

namespace shoal::learn::topic {
namespace {

// Documents whose topics are unevenly frequent, and cling together.
std::vector<Assigned> clinging(std::uint64_t seed) {
  auto documents = random_assignments(300, 40, 11, 3, seed);
  for (Assigned& document : documents) {
    for (std::size_t i = 0; i < document.topics.size(); ++i) {
      if (document.words[i] < 7) document.topics[i] = document.topics[0];
      if (document.words[i] == 8) document.topics[i] = 0;
      document.words[i] = (document.words[i] + 3 * document.topics[i]) % 11;
    }
  }
  return documents;
}

class Priors : public testing::Test {
 protected:
  const std::vector<Assigned> documents_ = clinging(5);
  // ln of what is maximised, but for a constant.
  double posterior(const Prior& prior) const {
    const Model model = counted(documents_, prior, 11);
    const Likelihood likelihood(prior, 11);
    LogLikelihood sum = log_likelihood(model);
    TopicCounter count;
    for (const Assigned& document : documents_) likelihood.add_document(count(document.topics), sum);
    double total = sum.total() + 0.001 * std::log(prior.beta) - prior.beta;
    for (const double alpha : prior.alpha) total += 0.001 * std::log(alpha) - alpha;
    return total;
  }
  PriorEvidence evidence(std::size_t begin, std::size_t end, const Model& model) const {
    PriorEvidence evidence(3);
    TopicCounter count;
    for (std::size_t d = begin; d < end; ++d) evidence.add_document(count(documents_[d].topics));
    for (std::uint32_t w = 0; w < model.words(); ++w) evidence.add_row(model[w]);
    return evidence;
  }
};

TEST_F(Priors, are_those_that_a_slow_search_finds) {
  const Prior start{{1, 1, 1}, 1};
  const Model model = counted(documents_, start, 11);
  const Prior found = optimised(start, evidence(0, documents_.size(), model), model.totals, 11, AlphaForm::of_each_topic, 2000);

  // One coordinate after the other, by steps that shrink.
  Prior best = start;
  double at = posterior(best);
  for (double step = 0.5; step > 1e-7;) {
    bool better = false;
    for (std::size_t i = 0; i < 4; ++i) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        Prior next = best;
        (i < 3 ? next.alpha[i] : next.beta) *= factor;
        const double there = posterior(next);
        if (there > at) {
          best = next;
          at = there;
          better = true;
        }
      }
    }
    if (!better) step /= 2;
  }
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(found.alpha[k], best.alpha[k], 1e-4 * best.alpha[k]);
  EXPECT_NEAR(found.beta, best.beta, 1e-4 * best.beta);
  EXPECT_GE(posterior(found), at - 1e-6);
}

// One number for all topics: the best of many that are tried, narrower and narrower, with Gamma's density of the one alpha.
TEST_F(Priors, one_alpha_for_all_topics_is_the_best_there_is) {
  const Prior start{{0.1, 5, 2}, 1};
  const Model model = counted(documents_, start, 11);
  const Prior found = optimised(start, evidence(0, documents_.size(), model), model.totals, 11, AlphaForm::of_all_alike, 2000);
  EXPECT_EQ(found.alpha, std::vector<double>(3, found.alpha[0]));
  const auto height = [&](double alpha) {
    const double of_three = 3 * (0.001 * std::log(alpha) - alpha);  // that posterior() has
    return posterior({{alpha, alpha, alpha}, found.beta}) - of_three * 2 / 3;
  };
  double low = 1e-3, high = 1e2;
  while (high / low > 1 + 1e-7) {  // it has one peak
    const double a = low * std::cbrt(high / low), b = a * std::cbrt(high / low);
    (height(a) < height(b) ? low : high) = height(a) < height(b) ? a : b;
  }
  EXPECT_NEAR(found.alpha[0], low, 1e-4 * low);
}

TEST_F(Priors, every_step_raises_the_posterior) {
  Prior prior{{5, 0.01, 0.3}, 2};
  const Model model = counted(documents_, prior, 11);
  const PriorEvidence all = evidence(0, documents_.size(), model);
  double at = posterior(prior);
  for (int step = 0; step < 20; ++step) {
    prior = optimised(prior, all, model.totals, 11, AlphaForm::of_each_topic, 1);
    EXPECT_GT(posterior(prior), at - 1e-9);
    at = posterior(prior);
  }
}

TEST_F(Priors, evidence_adds_up_and_travels_as_numbers) {
  const Prior start{{1, 1, 1}, 1};
  const Model model = counted(documents_, start, 11), none = counted({}, start, 11);
  const Prior wanted = optimised(start, evidence(0, 300, model), model.totals, 11);
  PriorEvidence sum = evidence(0, 100, none);
  sum += evidence(100, 150, model);
  sum.add_numbers(evidence(150, 300, none).numbers());
  const Prior found = optimised(start, sum, model.totals, 11);
  EXPECT_EQ(found.alpha, wanted.alpha);
  EXPECT_EQ(found.beta, wanted.beta);
}

TEST_F(Priors, topics_without_documents_keep_a_little) {
  const Model model = counted({{{0, 1, 1}, {0, 0, 0}}}, {{1, 1}, 1}, 2);
  PriorEvidence evidence(2);
  TopicCounter count;
  evidence.add_document(count(std::vector<Topic>{0, 0, 0}));
  for (std::uint32_t w = 0; w < 2; ++w) evidence.add_row(model[w]);
  const Prior found = optimised(model.prior, evidence, model.totals, 2, AlphaForm::of_each_topic, 1000);
  EXPECT_GT(found.alpha[0], 10 * found.alpha[1]);
  EXPECT_GT(found.alpha[1], 0);
  EXPECT_TRUE(std::isfinite(found.beta) && found.beta > 0);
}

// What MALLET does with the same counts, by its formulas over histograms: a step of Dirichlet.learnParameters, whose Gamma(1.001, 1) prior stands
// elsewhere, so that alpha may differ by 1 / sum over d of [psi(L_d + a) - psi(a)] and 1.001 / sum over d of [psi(C_dk + alpha_k) - psi(alpha_k)] of
// itself; 200 steps of Dirichlet.learnSymmetricConcentration, which has no prior: ours is added.
TEST_F(Priors, step_as_mallets_but_for_where_its_gamma_prior_stands) {
  const Prior start{{0.3, 2, 0.7}, 0.05};
  const Model model = counted(documents_, start, 11);
  const auto rise = [](double n, double a) {  // psi(n + a) - psi(a)
    double sum = 0;
    for (double i = 0; i < n; ++i) sum += 1 / (a + i);
    return sum;
  };
  const Prior stepped = optimised(start, evidence(0, documents_.size(), model), model.totals, 11, AlphaForm::of_each_topic, 1);
  double lengths = 0;
  std::vector<double> topics(3);
  TopicCounter count;
  for (const Assigned& document : documents_) {
    lengths += rise(static_cast<double>(document.topics.size()), start.alpha_sum());
    for (const auto [topic, tokens] : count(document.topics)) topics[topic] += rise(tokens, start.alpha[topic]);
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const double mallet = start.alpha[k] * (topics[k] + 1.001) / (lengths - 1);
    EXPECT_NEAR(stepped.alpha[k], mallet, (2 / lengths + 1.001 / topics[k]) * mallet);
  }

  const Prior found = optimised(start, evidence(0, documents_.size(), model), model.totals, 11, AlphaForm::of_each_topic, 200);
  double beta_sum = 11 * start.beta;
  for (int step = 0; step < 200; ++step) {
    const double beta = beta_sum / 11;
    double pairs = 0, totals = 0;
    for (const TopicCount& pair : model.counts) pairs += rise(pair.count, beta);
    for (const std::uint64_t total : model.totals) totals += rise(static_cast<double>(total), beta_sum);
    beta_sum = 11 * (beta * pairs + 0.001) / (11 * totals + 1);
  }
  EXPECT_NEAR(found.beta, beta_sum / 11, 1e-9 * found.beta);
}

// Kept until sweep 99, while topics settle; fitted after sweep 100, and again after 110; never where it is to be kept.
TEST_F(Priors, are_fitted_when_topics_have_settled) {
  trained(1, 1, 3, 0, [](Lda& lda, net::Transport&) {
    const auto prior_after = [&](unsigned sweeps, bool optimise) {
      train(lda, nullptr, nullptr, {.sweeps = sweeps, .optimise = optimise, .look_every = 0, .keep_every = 0}, {});
      return std::pair(lda.prior().alpha, lda.prior().beta);
    };
    const auto given = std::pair(lda.prior().alpha, lda.prior().beta);
    EXPECT_EQ(prior_after(99, true), given);
    const auto fitted = prior_after(100, true);
    EXPECT_NE(fitted, given);
    EXPECT_EQ(prior_after(109, true), fitted);
    const auto again = prior_after(110, true);
    EXPECT_NE(again, fitted);
    EXPECT_EQ(prior_after(130, false), again);
  });
}

// Sums of 1 / (a + i) are the oracle; counts that share a bin are within 1 % of its middle.
TEST(Histograms, rise_as_sums_of_fractions) {
  const auto slow = [](std::uint64_t n, double a) {
    double sum = 0;
    for (std::uint64_t i = 0; i < n; ++i) sum += 1 / (a + static_cast<double>(i));
    return sum;
  };
  for (const double a : {1e-5, 0.1, 3.0, 5000.0}) {
    Histogram small, large;
    double wanted_small = 0, wanted_large = 0;
    for (const std::uint64_t n : {0u, 1u, 2u, 2u, 7u, 1023u}) {
      small.add(n);
      wanted_small += slow(n, a);
    }
    for (const std::uint64_t n : {1024u, 1500u, 40'000u, 3'000'000u}) {
      large.add(n, 2);
      wanted_large += 2 * slow(n, a);
    }
    EXPECT_NEAR(small.rise(a), wanted_small, 1e-9 * wanted_small);
    EXPECT_NEAR(large.rise(a), wanted_large, 0.01 * wanted_large);
  }
}

}  // namespace
}  // namespace shoal::learn::topic
