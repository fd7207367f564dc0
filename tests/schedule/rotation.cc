// Rotation: every worker meets every block once a round, nobody has a block that another one has, and blocks go where they are needed.
#include "shoal/schedule/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

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

// Copies of teams: in a round each worker has each block once, as if one went round; whatever a team did to a block it tells before another team's turn
// with it and before the round ends, and what its copy was before, the next of the team finds.
TEST(Rotation, TeamsTellWhatTheyDidBeforeOthersHaveTheirTurn) {
  for (const std::vector<std::uint32_t>& sizes : {std::vector<std::uint32_t>{1}, {1, 1}, {3, 1}, {2, 2}, {1, 2, 4}, {5}}) {
    for (std::uint32_t ahead = 1; ahead <= 3; ++ahead) {
      std::vector<Team> teams;
      for (std::uint32_t first = 0; const std::uint32_t size : sizes) {
        teams.push_back({first, size});
        first += size;
      }
      const Rotation rotation{teams.back().first + teams.back().size, ahead};
      const std::uint64_t rounds = 3, end = rounds * rotation.blocks();
      for (std::uint32_t block = 0; block < rotation.blocks(); ++block) {
        std::vector<std::pair<std::uint64_t, std::size_t>> turns;  // of all teams: step, team; and whether it has told what it did then
        std::map<std::pair<std::uint64_t, std::size_t>, bool> tells;
        for (std::size_t t = 0; t < teams.size(); ++t) {
          std::set<std::uint32_t> of_round;
          Place place = rotation.first_within(teams[t], block, 0);
          for (; place.step < end; place = rotation.next_within(teams[t], place)) {
            ASSERT_EQ(rotation.block(place.worker, place.step), block);
            EXPECT_EQ(rotation.step_in_round(place.worker, block), place.step % rotation.blocks());
            EXPECT_TRUE(of_round.insert(place.worker).second);
            turns.emplace_back(place.step, t);
            tells[{place.step, t}] = rotation.tells(teams[t], place);
            const Place next = rotation.next_within(teams[t], place);
            if (next.step / rotation.blocks() == place.step / rotation.blocks()) continue;
            EXPECT_EQ(of_round.size(), teams[t].size);
            of_round.clear();
            EXPECT_EQ(next, rotation.first_within(teams[t], block, next.step / rotation.blocks() * rotation.blocks()));
          }
        }
        std::ranges::sort(turns);
        ASSERT_EQ(turns.size(), rounds * rotation.workers);
        for (std::size_t i = 0; i < turns.size(); ++i) {
          EXPECT_TRUE(i + 1 == turns.size() || turns[i + 1].first == turns[i].first + ahead);
          const bool last = i + 1 == turns.size() || turns[i + 1].second != turns[i].second ||
                            turns[i + 1].first / rotation.blocks() != turns[i].first / rotation.blocks();
          EXPECT_TRUE(teams.size() == 1 || tells.at(turns[i]) == last) << "block " << block << " at step " << turns[i].first;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shoal::schedule
