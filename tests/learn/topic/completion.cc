// Goal: what is foretold is what probability says: by frequencies where there is one topic, by enumeration where documents are tiny.
#include "shoal/learn/topic/completion.h"

#include <gmock/gmock.h>

#include <cmath>

#include "shoal/core/error.h"
#include "shoal/learn/topic/left_to_right.h"
#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

text::Documents listed(const std::vector<std::vector<std::uint32_t>>& lists) {
  text::Documents documents;
  for (const auto& words : lists) documents.append(words);
  return documents;
}

TEST(Completion, with_one_topic_is_by_the_words_frequencies) {
  const Model model = counted({{{0, 0, 0, 1}, {0, 0, 0, 0}}}, {{0.5}, 0.1}, 3);
  const Phi phi(model);
  const Foretold sum = complete(phi, listed({{1}, {}, {2, kUnknown}}), listed({{0, 1}, {kUnknown}, {2}}));
  EXPECT_EQ(sum.tokens, 3u);
  EXPECT_EQ(sum.unknown, 1u);
  const double wanted = std::log(3.1 / 4.3) + std::log(1.1 / 4.3) + std::log(0.1 / 4.3);
  EXPECT_NEAR(sum.log_probability, wanted, 1e-6);
  EXPECT_NEAR(sum.perplexity(), std::exp(-wanted / 3), 1e-5);
  EXPECT_EQ(Foretold{}.perplexity(), 0);
}

// One topic: each state foretells by its own frequencies, and together by the mean of these.
TEST(Completion, of_several_states_is_by_the_mean_of_what_they_foretell) {
  const Phi one(counted({{{0, 0, 0, 1}, {0, 0, 0, 0}}}, {{0.5}, 0.1}, 3)), other(counted({{{0, 1, 1, 1}, {0, 0, 0, 0}}}, {{0.5}, 0.1}, 3));
  const text::Documents shown = listed({{1}, {}}), hidden = listed({{0, kUnknown}, {2}});
  MeanCompletion mean(shown, hidden);
  const Foretold alone = mean.add(one);
  EXPECT_EQ(alone.log_probability, complete(one, shown, hidden).log_probability);
  EXPECT_EQ(mean.foretold().log_probability, alone.log_probability);
  mean.add(other);
  EXPECT_EQ(mean.states(), 2u);
  EXPECT_EQ(mean.foretold().tokens, 2u);
  EXPECT_EQ(mean.foretold().unknown, 1u);
  EXPECT_NEAR(mean.foretold().log_probability, std::log((3.1 + 1.1) / 2 / 4.3) + std::log(0.1 / 4.3), 1e-6);
}

TEST(Completion, parts_add_up_and_halves_need_each_other) {
  const Model model = counted(random_assignments(30, 20, 12, 3, 4), {{0.1, 0.2, 0.3}, 0.05}, 12);
  const Phi phi(model);
  text::Documents documents;
  for (const Assigned& document : random_assignments(10, 30, 12, 3, 5)) documents.append(document.words);
  const auto [shown, hidden] = halves(documents, 1);
  const Foretold whole = complete(phi, shown, hidden);
  Foretold sum = complete(phi, shown, hidden, 0, 4);
  sum += complete(phi, shown, hidden, 4, 10);
  EXPECT_NEAR(sum.log_probability, whole.log_probability, 1e-9);
  EXPECT_EQ(sum.tokens, whole.tokens);
  EXPECT_THROW(complete(phi, shown, listed({{1}})), Error);
}

// Every token is in one half, whoever has the document; over many tokens the halves are even: 10,000 draws deviate by 50.
TEST(Completion, halves_are_a_split_by_the_seed) {
  std::vector<std::uint32_t> words(10'000);
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i;
  const auto split = halves(listed({{7}, words}), 3), again = halves(listed({words}), 3, 1);
  EXPECT_NEAR(static_cast<double>(split.first[1].size()), 5000, 5 * 50);
  EXPECT_THAT(split.first[1], testing::ElementsAreArray(again.first[0]));
  std::vector<std::uint32_t> both(split.first[1].begin(), split.first[1].end());
  both.insert(both.end(), split.second[1].begin(), split.second[1].end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, words);
}

// What algorithm 3 gives with endlessly many particles: its draws of topics enumerated, each path with its probability.
class Enumerated {
 public:
  Enumerated(const Model& model, bool redraw) : model_(model), redraw_(redraw) {}
  double log_probability(const std::vector<std::uint32_t>& words) {
    words_ = words;
    means_.assign(words.size(), 0);
    std::vector<Topic> topics;
    before(0, 0, topics, 1);
    double sum = 0;
    for (const double mean : means_) sum += std::log(mean);
    return sum;
  }

 private:
  double weight(std::size_t i, Topic k, const std::vector<Topic>& topics) const {  // without the topic of word i
    double count = model_.prior.alpha[k];
    for (std::size_t j = 0; j < topics.size(); ++j) count += j != i && topics[j] == k ? 1 : 0;
    return count * phi_of(model_, words_[i], k);
  }
  double whole(std::size_t i, const std::vector<Topic>& topics) const {
    double sum = 0;
    for (Topic k = 0; k < model_.topics(); ++k) sum += weight(i, k, topics);
    return sum;
  }
  // The path has this probability, is about to come to word n, and has drawn the topics of the first i words anew for it.
  void before(std::size_t n, std::size_t i, std::vector<Topic> topics, double path) {
    if (n == words_.size()) return;
    if (redraw_ && i < n) {
      const double all = whole(i, topics);
      for (Topic k = 0; k < model_.topics(); ++k) {
        const double share = weight(i, k, topics) / all;
        std::vector<Topic> next = topics;
        next[i] = k;
        before(n, i + 1, next, path * share);
      }
      return;
    }
    const double all = whole(n, topics);
    means_[n] += path * all / (static_cast<double>(n) + model_.prior.alpha_sum());
    for (Topic k = 0; k < model_.topics(); ++k) {
      std::vector<Topic> next = topics;
      next.push_back(k);
      before(n + 1, 0, next, path * weight(n, k, topics) / all);
    }
  }
  const Model& model_;
  const bool redraw_;
  std::vector<std::uint32_t> words_;
  std::vector<double> means_;
};

// ln p(w) over all assignments of topics.
double exact(const Model& model, const std::vector<std::uint32_t>& words) {
  double sum = 0;
  std::size_t paths = 1;
  for (std::size_t i = 0; i < words.size(); ++i) paths *= model.topics();
  for (std::size_t path = 0; path < paths; ++path) {
    std::vector<double> counts = model.prior.alpha;
    double product = 1;
    std::size_t rest = path;
    for (std::size_t i = 0; i < words.size(); ++i, rest /= model.topics()) {
      const auto k = static_cast<Topic>(rest % model.topics());
      product *= counts[k]++ / (static_cast<double>(i) + model.prior.alpha_sum()) * phi_of(model, words[i], k);
    }
    sum += product;
  }
  return std::log(sum);
}

class LeftToRight : public testing::TestWithParam<bool> {
 protected:
  const Model model_ = counted(random_assignments(40, 20, 8, 3, 2), {{0.4, 0.1, 0.9}, 0.02}, 8);
  const Phi phi_{model_};
  double estimate(const std::vector<std::uint32_t>& words, unsigned particles) const {
    return left_to_right(phi_, listed({words}), 0, 1, {particles, GetParam(), 5}).log_probability;
  }
};

// 40,000 particles scatter by less than 0.5 % of a probability; three standard deviations are 0.015.
TEST_P(LeftToRight, is_what_its_paths_add_up_to) {
  for (const auto& words : {std::vector<std::uint32_t>{0}, {1, 7}, {2, 2, 5}, {0, 3, 6, 1}}) {
    EXPECT_NEAR(estimate(words, 40'000), Enumerated(model_, GetParam()).log_probability(words), 0.015) << words.size();
  }
}

// Two words: topics before the second are drawn from their posterior, so that there is nothing to correct. More: close to it.
TEST_P(LeftToRight, comes_to_the_probability_itself) {
  for (const auto& words : {std::vector<std::uint32_t>{4}, {1, 7}}) {
    EXPECT_NEAR(Enumerated(model_, GetParam()).log_probability(words), exact(model_, words), 1e-6);
  }
  EXPECT_NEAR(Enumerated(model_, true).log_probability({0, 3, 6, 1}), exact(model_, {0, 3, 6, 1}), 0.02);
}

TEST_P(LeftToRight, leaves_out_what_is_unknown_and_repeats_itself) {
  const auto options = LeftToRightOptions{5, GetParam(), 3};
  const Foretold some = left_to_right(phi_, listed({{1, kUnknown, 2}, {}}), 0, 2, options);
  EXPECT_EQ(some.tokens, 2u);
  EXPECT_EQ(some.unknown, 1u);
  EXPECT_EQ(some.log_probability, left_to_right(phi_, listed({{1, 2}}), 0, 1, options).log_probability);
}

INSTANTIATE_TEST_SUITE_P(Variants, LeftToRight, testing::Bool(), [](const auto& run) { return run.param ? "redraw" : "leave"; });

}  // namespace
}  // namespace shoal::learn::topic
