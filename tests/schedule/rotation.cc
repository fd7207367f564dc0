// Rotation: every worker meets every block once a round, nobody has a block that another one has, and blocks go where they are needed.
#include "shoal/schedule/rotation.h"

#include <gtest/gtest.h>

#include <set>

namespace shoal::schedule {
namespace {

TEST(Rotation, EveryWorkerMeetsEveryBlockOnceARound) {
  for (std::uint32_t workers = 1; workers <= 9; ++workers) {
    for (std::uint32_t ahead = 1; ahead <= 4; ++ahead) {
      const Rotation rotation{workers, ahead};
      for (std::uint32_t worker = 0; worker < workers; ++worker) {
        std::set<std::uint32_t> met;
        for (std::uint64_t step = 7; step < 7 + rotation.blocks(); ++step) met.insert(rotation.block(worker, step));
        EXPECT_EQ(met.size(), rotation.blocks());
      }
    }
  }
}

TEST(Rotation, ABlockIsOneWorkersFromOneStepToTheStepOfTheNext) {
  for (std::uint32_t workers = 1; workers <= 9; ++workers) {
    for (std::uint32_t ahead = 1; ahead <= 4; ++ahead) {
      const Rotation rotation{workers, ahead};
      for (std::uint64_t step = 0; step < 3 * rotation.blocks(); ++step) {
        std::set<std::uint32_t> used;
        for (std::uint32_t worker = 0; worker < workers; ++worker) {
          const std::uint32_t block = rotation.block(worker, step);
          EXPECT_TRUE(used.insert(block).second) << "two workers have block " << block;
          EXPECT_EQ(rotation.block(rotation.next(worker), rotation.next_step(step)), block);
          // Nobody uses it in between.
          for (std::uint64_t between = step + 1; between < rotation.next_step(step); ++between) {
            for (std::uint32_t other = 0; other < workers; ++other) EXPECT_NE(rotation.block(other, between), block);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shoal::schedule
