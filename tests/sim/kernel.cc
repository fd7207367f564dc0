// Events in simulated time, against closed forms and against a second kernel without heaps and components.
#include "shoal/sim/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace shoal::sim {
namespace {

using Path = std::vector<std::uint32_t>;

// When each token came.
std::map<std::uint64_t, double> run(Kernel& kernel) {
  std::map<std::uint64_t, double> times;
  for (Event event; kernel.next(event);) EXPECT_TRUE(times.emplace(event.token, kernel.now()).second);
  return times;
}

TEST(Kernel, a_flow_takes_its_bytes_over_the_narrowest_link) {
  Kernel kernel({10, 2, 5});
  const Path path{0, 1, 2};
  kernel.flow(path, 8, 1);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 4.0}}));
  for (std::uint32_t link = 0; link < 3; ++link) EXPECT_EQ(kernel.carried(link), 8);
}

// 10 bytes/s: both at 5 until the first has its 10 bytes (2 s), then the second alone has 10 more (1 s).
TEST(Kernel, who_stays_has_the_link_alone) {
  Kernel kernel({10});
  const Path path{0};
  kernel.flow(path, 10, 1);
  kernel.flow(path, 20, 2);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 2.0}, {2, 3.0}}));
}

TEST(Kernel, a_sender_serves_lower_numbers_first) {
  Kernel kernel({10, 10});
  const Path first{0}, second{1};
  kernel.flow(first, 10, 1, 7);
  kernel.flow(first, 20, 2, 3);
  kernel.flow(second, 10, 3, 9);  // another first link: nobody to wait for
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 3.0}, {2, 2.0}, {3, 1.0}}));
}

TEST(Kernel, what_the_urgent_cannot_use_the_others_have) {
  Kernel kernel({10, 4});
  const Path narrow{0, 1}, wide{0};
  kernel.flow(narrow, 8, 1, 0);
  kernel.flow(wide, 12, 2, 1);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 2.0}, {2, 2.0}}));
}

TEST(Kernel, flows_of_two_senders_are_equal_whatever_their_numbers) {
  Kernel kernel({10, 10, 10});
  const Path a{0, 2}, b{1, 2};
  kernel.flow(a, 10, 1, 0);
  kernel.flow(b, 10, 2, 5);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 2.0}, {2, 2.0}}));
}

TEST(Kernel, a_cap_leaves_the_rest_to_others) {
  Kernel kernel({10});
  const Path path{0};
  kernel.flow(path, 4, 1, 0, 2);
  kernel.flow(path, 16, 2);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 2.0}, {2, 2.0}}));
}

TEST(Kernel, an_endless_flow_slows_others_and_never_ends) {
  Kernel kernel({10});
  const Path path{0};
  kernel.flow(path, std::numeric_limits<double>::infinity(), 1);
  kernel.flow(path, 10, 2);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{2, 2.0}}));
  EXPECT_EQ(kernel.carried(0), 20);
}

TEST(Kernel, a_cancelled_flow_leaves_its_share_and_what_it_has_moved_is_carried) {
  Kernel kernel({10});
  const Path path{0};
  const std::uint32_t first = kernel.flow(path, 100, 1);
  kernel.flow(path, 15, 2);
  kernel.timer(1, 3);
  Event event;
  ASSERT_TRUE(kernel.next(event));
  kernel.cancel(first);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{2, 2.0}}));
  EXPECT_EQ(kernel.carried(0), 20);
}

TEST(Kernel, another_capacity_counts_from_then_on) {
  Kernel kernel({10, 10});
  const Path alone{0}, both{0, 1};
  kernel.flow(alone, 15, 1);
  kernel.timer(1, 3);
  Event event;
  ASSERT_TRUE(kernel.next(event));
  kernel.set_capacity(0, 5);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{1, 2.0}}));
  kernel.flow(both, 10, 2);
  EXPECT_EQ(run(kernel), (std::map<std::uint64_t, double>{{2, 4.0}}));
}

TEST(Kernel, events_of_one_moment_come_as_they_were_scheduled) {
  Kernel kernel({10});
  const Path path{0};
  kernel.timer(1, 3);
  kernel.flow(path, 10, 1);
  kernel.timer(1, 2);
  std::vector<std::uint64_t> order;
  for (Event event; kernel.next(event);) order.push_back(event.token);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 2, 1}));  // the flow's end is known when its rate is
}

TEST(Kernel, flows_that_share_nothing_are_not_computed_anew) {
  Kernel kernel(std::vector<double>(100, 10));
  std::vector<Path> paths;
  for (std::uint32_t link = 0; link < 100; ++link) paths.push_back({link});
  for (std::uint32_t link = 0; link < 100; ++link) kernel.flow(paths[link], 1 + link, link);
  run(kernel);
  EXPECT_EQ(kernel.solved(), 0U);
}

struct Planned {
  double start;
  Path path;
  double bytes;
};

// Steps of time to the next start or end, all rates by filling up from the definition.
std::vector<double> by_steps(const std::vector<double>& capacities, const std::vector<Planned>& flows) {
  std::vector<double> left, ends(flows.size(), -1);
  for (const Planned& flow : flows) left.push_back(flow.bytes);
  double now = 0;
  while (std::ranges::count(ends, -1) > 0) {
    std::vector<double> room = capacities, rates(flows.size(), 0);
    std::vector<std::size_t> rising;
    double step = 1e9;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (ends[i] >= 0) continue;
      if (flows[i].start > now) {
        step = std::min(step, flows[i].start - now);
      } else {
        rising.push_back(i);
      }
    }
    const std::vector<std::size_t> active = rising;
    while (!rising.empty()) {
      std::uint32_t least = 0;
      double share = 1e18;
      for (std::uint32_t link = 0; link < room.size(); ++link) {
        const auto count = std::ranges::count_if(rising, [&](std::size_t i) { return std::ranges::count(flows[i].path, link) > 0; });
        if (count == 0 || room[link] / static_cast<double>(count) >= share) continue;
        share = room[link] / static_cast<double>(count);
        least = link;
      }
      std::erase_if(rising, [&](std::size_t i) {
        if (std::ranges::count(flows[i].path, least) == 0) return false;
        rates[i] = share;
        for (const std::uint32_t link : flows[i].path) room[link] -= share;
        return true;
      });
    }
    for (const std::size_t i : active) step = std::min(step, left[i] / rates[i]);
    now += step;
    for (const std::size_t i : active) {
      left[i] -= rates[i] * step;
      if (left[i] < 1e-9 * flows[i].bytes) ends[i] = now;
    }
  }
  return ends;
}

TEST(Kernel, ends_are_those_of_the_definition_on_random_networks) {
  std::mt19937 random(8);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> capacities;
    for (std::size_t i = 1 + random() % 6; i > 0; --i) capacities.push_back(static_cast<double>(1 + random() % 20));
    std::vector<Planned> flows;
    for (std::size_t i = 1 + random() % 15; i > 0; --i) {
      Planned flow{static_cast<double>(random() % 8), {}, static_cast<double>(1 + random() % 100)};
      for (std::uint32_t link = 0; link < capacities.size(); ++link) {
        if (random() % 2 == 0) flow.path.push_back(link);
      }
      if (flow.path.empty()) flow.path.push_back(0);
      flows.push_back(flow);
    }
    Kernel kernel(capacities);
    constexpr std::uint64_t kStart = 1000;
    for (std::size_t i = 0; i < flows.size(); ++i) kernel.timer(flows[i].start, kStart + i);
    std::vector<double> ends(flows.size());
    for (Event event; kernel.next(event);) {
      if (event.kind == Event::Kind::timer) {
        const Planned& flow = flows[event.token - kStart];
        kernel.flow(flow.path, flow.bytes, event.token - kStart);
      } else {
        ends[event.token] = kernel.now();
      }
    }
    const std::vector<double> expected = by_steps(capacities, flows);
    for (std::size_t i = 0; i < flows.size(); ++i) ASSERT_NEAR(ends[i], expected[i], 1e-6 * expected[i]) << "round " << round << ", flow " << i;
    double bytes = 0, carried = 0;
    for (const Planned& flow : flows) bytes += flow.bytes * static_cast<double>(flow.path.size());
    for (std::uint32_t link = 0; link < capacities.size(); ++link) carried += kernel.carried(link);
    EXPECT_NEAR(carried, bytes, 1e-6 * bytes);
  }
}

}  // namespace
}  // namespace shoal::sim
