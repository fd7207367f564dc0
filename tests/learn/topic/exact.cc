// The exact sampler draws the same topics on every instruction set. What holds for all samplers: samplers.cc.
#include "shoal/learn/topic/exact.h"

#include <gtest/gtest.h>

#include <hwy/highway.h>

#include <vector>

#include "tests/core/every_target.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

void expect_same_topics_on_every_target(const text::Documents& documents, std::uint32_t topics, const Beginning& beginning) {
  std::vector<Topic> first;
  for (const std::int64_t target : targets_here()) {
    choose_target(target);
    Alone alone({}, documents, 100, {std::vector<double>(topics, 5.0 / topics), 0.01}, beginning);
    for (std::uint64_t sweep = 0; sweep < 8; ++sweep) alone.sweep(sweep);
    if (first.empty()) first = alone.block().topics;
    EXPECT_EQ(alone.block().topics, first) << hwy::TargetName(target) << ", " << topics << " topics";
  }
  choose_target(0);
}

TEST(Exact, GivesTheSameTopicsOnEveryInstructionSet) {
  for (const std::uint32_t topics : {3u, 64u, 700u}) {
    expect_same_topics_on_every_target(random_documents(200, 100, 80, 5), topics, {});
    expect_same_topics_on_every_target(random_documents(20, 100, 2000, 5), topics, {.by_topic = true});
  }
}

}  // namespace
}  // namespace shoal::learn::topic
