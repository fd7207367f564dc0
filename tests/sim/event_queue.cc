// The first of all that is scheduled, against a stable sort.
#include "shoal/sim/event_queue.h"

#include <gtest/gtest.h>

#include <random>

namespace shoal::sim {
namespace {

// Events come and go at random, none before the last that went. Their times are few (rows of equal ones), many (places are shared, and
// taken from moments that still wait), or both in turn; a second queue searches all that it holds.
TEST(EventQueue, the_earliest_goes_first_and_of_one_time_whatever_came_first) {
  std::mt19937 random(5);
  for (const std::uint32_t times : {1U, 3U, 50'000U}) {
    EventQueue<int> queue;
    std::vector<std::pair<double, int>> all;
    double now = 0;
    for (int event = 0; event < 6'000 || !queue.empty(); ++event) {
      const bool more = event < 6'000 && random() % 5 < 3;
      if (more) {
        const double when = now + 1e-3 * static_cast<double>(random() % 2 == 0 ? random() % times : random() % 2);
        queue.push(when, event);
        all.emplace_back(when, event);
      } else if (!queue.empty()) {
        const auto first = std::ranges::min_element(all);  // numbers rise in the order of scheduling
        ASSERT_EQ(queue.when(), first->first);
        ASSERT_EQ(queue.front(), first->second);
        now = queue.when();
        queue.pop();
        all.erase(first);
      }
    }
    EXPECT_TRUE(all.empty());
  }
}

}  // namespace
}  // namespace shoal::sim
