// Goal: the joint likelihood is the one of the chain rule, whatever the counts, and its parts add up.
#include "shoal/learn/topic/likelihood.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

// Each token in turn: its topic given those before in its document, its word given those before in its topic. The product of these
// conditional probabilities is the joint one, in any order of the tokens.
double by_chain_rule(const std::vector<Assigned>& documents, const Prior& prior, std::uint32_t words) {
  const std::size_t topics = prior.alpha.size();
  std::vector<std::vector<double>> of_word(words, std::vector<double>(topics));
  std::vector<double> totals(topics);
  double sum = 0;
  for (const Assigned& document : documents) {
    std::vector<double> here(topics);
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      const std::uint32_t w = document.words[i];
      const Topic k = document.topics[i];
      sum += std::log((here[k] + prior.alpha[k]) / (static_cast<double>(i) + prior.alpha_sum()));
      sum += std::log((of_word[w][k] + prior.beta) / (totals[k] + prior.beta * words));
      here[k] += 1;
      of_word[w][k] += 1;
      totals[k] += 1;
    }
  }
  return sum;
}

LogLikelihood of(const std::vector<Assigned>& documents, const Model& model) {
  const Likelihood likelihood(model.prior, model.words());
  LogLikelihood sum = log_likelihood(model);
  TopicCounter count;
  for (const Assigned& document : documents) likelihood.add_document(count(document.topics), sum);
  return sum;
}

TEST(Likelihood, is_the_product_of_conditional_probabilities) {
  for (const auto& alpha : {std::vector<double>{0.1, 0.1, 0.1}, {2.5, 0.01, 40}, {1e-5, 1e5, 1}}) {
    for (const double beta : {0.01, 1.0, 1e-4}) {
      const Prior prior{alpha, beta};
      const auto documents = random_assignments(20, 30, 7, 3, 5);
      const Model model = counted(documents, prior, 7);
      const LogLikelihood sum = of(documents, model);
      EXPECT_NEAR(sum.total(), by_chain_rule(documents, prior, 7), 1e-9 * std::abs(sum.total()));
      EXPECT_NEAR(sum.per_token() * static_cast<double>(sum.tokens), sum.total(), 1e-9 * std::abs(sum.total()));
    }
  }
}

// Counts beyond the tables and beyond what is multiplied out: a document of 10,000 tokens with two words.
TEST(Likelihood, holds_for_large_counts) {
  const Prior prior{{0.3, 7}, 0.02};
  const auto documents = random_assignments(2, 10'000, 2, 2, 3);
  const LogLikelihood sum = of(documents, counted(documents, prior, 2));
  EXPECT_NEAR(sum.total(), by_chain_rule(documents, prior, 2), 1e-9 * std::abs(sum.total()));
}

TEST(Likelihood, of_nothing_is_0_and_parts_add_up) {
  const Prior prior{{0.1, 0.2}, 0.01};
  EXPECT_EQ(of({}, counted({}, prior, 5)).total(), 0);
  const std::vector<Assigned> empty(3);
  EXPECT_EQ(of(empty, counted(empty, prior, 5)).total(), 0);

  const auto documents = random_assignments(9, 12, 5, 2, 1);
  const Model model = counted(documents, prior, 5);
  const LogLikelihood whole = of(documents, model);
  const Likelihood likelihood(prior, 5);
  TopicCounter count;
  LogLikelihood sum;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    LogLikelihood part;
    likelihood.add_document(count(documents[d].topics), part);
    if (d < model.words()) likelihood.add_row(model[static_cast<std::uint32_t>(d)], part);
    if (d < model.topics()) likelihood.add_totals(std::span(model.totals).subspan(d, 1), part);
    sum += part;
  }
  EXPECT_NEAR(sum.total(), whole.total(), 1e-9);
  EXPECT_EQ(sum.tokens, whole.tokens);
}

TEST(Likelihood, one_topic_leaves_documents_no_choice) {
  const Prior prior{{0.7}, 0.5};
  const auto documents = random_assignments(5, 40, 3, 1, 2);
  EXPECT_NEAR(of(documents, counted(documents, prior, 3)).documents, 0, 1e-9);
}

}  // namespace
}  // namespace shoal::learn::topic
