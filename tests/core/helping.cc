// Each element is done once, whoever asks for help at the same time.
#include "shoal/core/helping.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace shoal {
namespace {

// Whether each of `count` elements was counted once.
bool each_once(std::size_t count, std::size_t piece) {
  std::vector<int> times(count);
  share(count, piece, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) ++times[i];
  });
  return std::ranges::all_of(times, [](int n) { return n == 1; });
}

TEST(Helping, each_element_is_done_once) {
  for (const std::size_t count : {0u, 1u, 9u, 10u, 11u, 20u, 1001u}) EXPECT_TRUE(each_once(count, 10)) << count;
}

TEST(Helping, short_walks_are_gone_alone_and_long_ones_in_pieces) {
  std::vector<std::size_t> lengths;
  with_help(100, 8, [&](std::size_t begin, std::size_t end) { lengths.push_back(end - begin); });
  EXPECT_EQ(lengths, std::vector<std::size_t>{100});
  std::atomic<std::size_t> all = 0;
  with_help(kWorthHelp, 4, [&](std::size_t begin, std::size_t end) { all += end - begin; });
  EXPECT_EQ(all, kWorthHelp);
}

TEST(Helping, whoever_asks_at_the_same_time) {
  std::vector<std::thread> askers;
  std::vector<int> right(4);
  for (int& all : right) {
    askers.emplace_back([&all] {
      all = 1;
      for (int i = 0; i < 500; ++i) all = all && each_once(1000, 7);
    });
  }
  for (auto& asker : askers) asker.join();
  EXPECT_EQ(std::accumulate(right.begin(), right.end(), 0), 4);
}

TEST(Helping, a_forked_process_has_help_of_its_own) {
  ASSERT_TRUE(each_once(1000, 10));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(each_once(1000, 10) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace shoal
