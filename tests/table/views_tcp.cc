// Views between threads: two workers a member, over sockets, while rows come and are replaced.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "shoal/table/tables.h"
#include "tests/net/members.h"

namespace shoal::table {
namespace {

// Goal: a view is the same at each look from any thread, while both workers of the member and those of the other read, add and tick; and all sums are exact.
// Each worker keeps a view while it does so, and hands it to another thread, where it ends.
TEST(ViewsOfThreads, stay_as_they_are) {
  constexpr net::Rank kMembers = 2;
  constexpr std::uint32_t kWorkers = 2;
  constexpr Clock kClocks = 60;
  constexpr std::size_t kWidth = 40;
  const auto jobs = net::join_all(kMembers);
  std::vector<Key> keys(50);
  std::iota(keys.begin(), keys.end(), Key{0});
  const std::vector<std::int64_t> ones(keys.size() * kWidth, 1);
  std::uint16_t channel = 10;
  for (const Consistency& consistency : {Consistency(Essp{1}), Consistency(Async{})}) {
    ++channel;
    net::each(kMembers, [&](net::Rank rank) {
      Tables tables(jobs[rank]->transport(), {.workers_a_member = kWorkers, .channel = channel});
      net::each(kWorkers, [&](std::uint32_t worker) {
        auto counts = tables.worker(worker).open<std::int64_t>({.name = "counts", .width = kWidth, .consistency = consistency});
        std::thread looks;
        for (Clock clock = 0; clock < kClocks; ++clock) {
          const auto view = counts.view(keys);
          std::vector<std::int64_t> before;
          for (std::size_t i = 0; i < view.size(); ++i) {
            before.push_back(view[i][0]);
            EXPECT_GE(before.back(), clock);
          }
          if (looks.joinable()) looks.join();
          looks = std::thread([view, before] {
            for (std::size_t i = 0; i < view.size(); ++i) {
              for (const std::int64_t value : view[i]) EXPECT_EQ(value, before[i]);
            }
          });
          counts.add(keys, ones);
          counts.tick();
        }
        looks.join();
        counts.barrier();
        const auto view = counts.view(keys);
        for (std::size_t i = 0; i < view.size(); ++i) EXPECT_EQ(view[i][kWidth - 1], kMembers * kWorkers * kClocks);
        counts.barrier();
      });
    });
  }
}

}  // namespace
}  // namespace shoal::table
