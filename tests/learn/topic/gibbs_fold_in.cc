// Goal: drawn topics follow the posterior that enumeration gives, on average and each.
#include "shoal/learn/topic/gibbs_fold_in.h"

#include <gmock/gmock.h>

#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

class GibbsFoldingIn : public testing::Test {
 protected:
  const Model model_ = counted(random_assignments(20, 10, 9, 3, 6), {{0.4, 0.1, 0.9}, 0.2}, 9);
  const Phi phi_{model_};
};

TEST_F(GibbsFoldingIn, a_draw_takes_each_topic_by_its_weight) {
  DrawnTopics drawn(phi_);
  for (const Topic k : {1u, 1u, 2u, 0u}) drawn.add(k);
  drawn.remove(0);
  EXPECT_THAT(drawn.held(), testing::UnorderedElementsAre(1, 2));
  const double counts[] = {0, 2, 1};
  for (std::uint32_t w = 0; w < 9; ++w) {
    double whole = 0, shares[3];
    for (Topic k = 0; k < 3; ++k) whole += shares[k] = (counts[k] + model_.prior.alpha[k]) * phi_of(model_, w, k);
    EXPECT_NEAR(drawn.weight(w), whole, 1e-6 * whole);
    double seen[3] = {};
    constexpr int kSteps = 20'000;
    for (int step = 0; step < kSteps; ++step) seen[drawn.draw(w, (step + 0.5) / kSteps)] += 1.0 / kSteps;
    for (Topic k = 0; k < 3; ++k) EXPECT_NEAR(seen[k], shares[k] / whole, 4.0 / kSteps) << "word " << w << ", topic " << k;
  }
}

// Theta's mean over 4,000 documents is the posterior's, enumerated over the topics of three tokens: deviation of a mean below 0.006.
TEST_F(GibbsFoldingIn, theta_is_the_posterior_mean) {
  const std::vector<std::uint32_t> words{0, 5, 7};
  double whole = 0, wanted[3] = {};
  for (int path = 0; path < 27; ++path) {
    std::vector<double> counts = model_.prior.alpha;
    double product = 1;
    for (int i = 0, rest = path; i < 3; ++i, rest /= 3) {
      product *= counts[static_cast<std::size_t>(rest % 3)]++ * phi_of(model_, words[static_cast<std::size_t>(i)], static_cast<Topic>(rest % 3));
    }
    whole += product;
    for (Topic k = 0; k < 3; ++k) wanted[k] += product * counts[k] / (3 + model_.prior.alpha_sum());
  }
  GibbsFoldIn fold_in(phi_, {10, 1, 4});
  double mean[3] = {};
  Mixture mixture;
  for (std::uint64_t document = 0; document < 4000; ++document) {
    fold_in(words, document, mixture);
    for (Topic k = 0; k < 3; ++k) mean[k] += mixture.others * phi_.alpha()[k] / 4000;
    for (const auto [topic, share] : mixture.topics) mean[topic] += (share - mixture.others * phi_.alpha()[topic]) / 4000;
  }
  for (Topic k = 0; k < 3; ++k) EXPECT_NEAR(mean[k], wanted[k] / whole, 0.02);
}

TEST_F(GibbsFoldingIn, repeats_itself_by_seed_and_document) {
  const std::vector<std::uint32_t> words{0, 1, 2, 3, kUnknown, 4, 5, 6};
  const auto shares = [&](std::uint64_t seed, std::uint64_t document) {
    Mixture mixture;
    GibbsFoldIn(phi_, {3, 50, seed})(words, document, mixture);
    EXPECT_EQ(mixture.unknown, 1u);
    std::vector<double> values;
    for (const auto [topic, share] : mixture.topics) values.push_back(topic + share);
    return values;
  };
  EXPECT_EQ(shares(1, 0), shares(1, 0));
  EXPECT_NE(shares(1, 0), shares(1, 1));
  EXPECT_NE(shares(1, 0), shares(2, 0));
}

}  // namespace
}  // namespace shoal::learn::topic
