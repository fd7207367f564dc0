// The exact sampler draws the same topics on every instruction set. What holds for all samplers: samplers.cc.
#include "shoal/learn/topic/exact.h"

#include <gtest/gtest.h>

#include <hwy/highway.h>

#include <vector>

#include "tests/core/every_target.h"
#include "tests/learn/topic/alone.h"

namespace shoal::learn::topic {
namespace {

TEST(Exact, GivesTheSameTopicsOnEveryInstructionSet) {
  for (const std::uint32_t topics : {3u, 64u, 700u}) {
    std::vector<Topic> first;
    for (const std::int64_t target : targets_here()) {
      choose_target(target);
      Alone alone({}, random_documents(200, 100, 80, 5), 100, {std::vector<double>(topics, 5.0 / topics), 0.01});
      for (std::uint64_t sweep = 0; sweep < 8; ++sweep) alone.sweep(sweep);
      if (first.empty()) first = alone.block().topics;
      EXPECT_EQ(alone.block().topics, first) << hwy::TargetName(target) << ", " << topics << " topics";
    }
    choose_target(0);
  }
}

}  // namespace
}  // namespace shoal::learn::topic
