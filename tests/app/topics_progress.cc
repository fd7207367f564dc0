// What the bar of a topic model's training says, word by word.
#include "app/topics_progress.h"

#include <gtest/gtest.h>

namespace shoal::app {
namespace {

TEST(topics_progress, says_what_is_known) {
  EXPECT_EQ(sentence(TrainingNow{.sweep = 1, .sweeps = 200, .memory = 8.24e7}), "sweep 1 of 200, 82 MB");
  EXPECT_EQ(sentence(TrainingNow{.sweep = 31, .sweeps = 200, .rate = 11.84e6, .log_likelihood = -8.8126, .memory = 4.12e8, .left = 75}),
            "sweep 31 of 200, 11.8 M tokens/s, log-likelihood -8.813, 412 MB, 75 s left");
  EXPECT_EQ(sentence(TrainingNow{.sweep = 31, .sweeps = 200, .rate = 1e6, .log_likelihood = -8.8126, .perplexity = 1605.7, .memory = 4e8, .left = 7500}),
            "sweep 31 of 200, 1.0 M tokens/s, log-likelihood -8.813, perplexity 1606, 400 MB, 2 h 05 min left");
}

TEST(topics_progress, says_what_is_left_as_people_do) {
  EXPECT_EQ(show_left(0.4), "0 s");
  EXPECT_EQ(show_left(99), "99 s");
  EXPECT_EQ(show_left(100), "2 min");
  EXPECT_EQ(show_left(5940), "99 min");
  EXPECT_EQ(show_left(6000), "1 h 40 min");
  EXPECT_EQ(show_left(86'400), "24 h 00 min");
}

}  // namespace
}  // namespace shoal::app
