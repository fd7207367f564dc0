// The policies by ticks: who sends next, who may send, who is alive. No network, no clock.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "shoal/net/credit.h"
#include "shoal/net/health.h"
#include "shoal/net/send_queue.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

struct Item {
  Order order;
  int name;
};

std::vector<int> drain(SendQueue<Item>& queue) {
  std::vector<int> names;
  while (Item* item = queue.next()) {
    names.push_back(item->name);
    queue.erase(item->order, item);
  }
  return names;
}

TEST(SendQueue, class_then_value_then_iteration_then_arrival) {
  std::vector<Item> items = {
      {{{Class::background, 0, 0}, 1}, 7}, {{{Class::bulk, 2, 0}, 2}, 6}, {{{Class::bulk, 1, 5}, 3}, 4},
      {{{Class::bulk, 1, 5}, 4}, 5},       {{{Class::bulk, 1, 4}, 5}, 3}, {{{Class::bulk, 0, 9}, 6}, 2},
      {{{Class::urgent, 9, 9}, 7}, 1},
  };
  SendQueue<Item> queue;
  for (Item& item : items) queue.insert(item.order, &item);
  EXPECT_EQ(drain(queue), (std::vector<int>{1, 2, 3, 4, 5, 6, 7}));
}

// While both wait for ever, background gets one byte in sixteen.
TEST(SendQueue, background_is_guaranteed_a_sixteenth) {
  Item bulk{{{Class::bulk, 0, 0}, 1}, 1}, background{{{Class::background, 0, 0}, 2}, 2};
  SendQueue<Item> queue;
  queue.insert(bulk.order, &bulk);
  queue.insert(background.order, &background);
  std::map<int, std::uint64_t> bytes;
  for (int i = 0; i < 16'000; ++i) {
    Item* item = queue.next();
    bytes[item->name] += 64 * 1024;
    queue.sent(item->order.priority.cls, 64 * 1024);
  }
  EXPECT_NEAR(static_cast<double>(bytes[2]) / static_cast<double>(bytes[1] + bytes[2]), 1.0 / 16, 0.001);
}

TEST(EagerBudget, what_was_not_sent_cannot_be_consumed) {
  EagerBudget budget;
  budget.sent(1000);
  EXPECT_EQ(budget.left(), kEagerPeer - 1000);
  EXPECT_TRUE(budget.consumed(600));
  EXPECT_EQ(budget.left(), kEagerPeer - 400);
  EXPECT_FALSE(budget.consumed(1001));
}

Instant tick(int ms) { return Instant{} + 1h + std::chrono::milliseconds(ms); }

Demand demand_of(Rank peer, std::uint32_t value, std::uint64_t arrival) {
  Demand demand;
  demand.peer = peer;
  demand.tag = {arrival, 0};
  demand.order = {{Class::bulk, value, 0}, arrival};
  return demand;
}

TEST(Credit, a_small_receive_needs_no_grant_unless_its_sender_asks) {
  CreditPolicy policy;
  Demand demand = demand_of(1, 0, 1);
  policy.posted(demand, 4096);
  EXPECT_TRUE(policy.collect(tick(0)).empty());
  policy.asked(demand, 0);
  const auto grants = policy.collect(tick(0));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].limit, 4096u);
}

TEST(Credit, a_stream_that_comes_unasked_as_a_whole_needs_no_grant) {
  CreditPolicy policy;
  Demand demand = demand_of(1, 0, 1);
  policy.posted(demand, kEagerStream);
  EXPECT_TRUE(policy.collect(tick(0)).empty());
  policy.posted(demand, kEagerStream);  // more than its sender may send on its own
  const auto grants = policy.collect(tick(0));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].limit, 2 * kEagerStream);
}

TEST(Credit, the_better_priority_is_granted_first) {
  CreditPolicy policy;
  Demand late = demand_of(1, 5, 1), early = demand_of(2, 1, 2);
  policy.posted(late, 64 << 20);
  policy.posted(early, 64 << 20);
  const auto grants = policy.collect(tick(0));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].peer, 2u);
}

TEST(Credit, without_a_link_all_that_is_posted_is_granted) {
  constexpr std::uint64_t kMost = 30 << 20;
  CreditPolicy policy;
  policy.without_link();
  Demand demand{.peer = 1, .tag = {1, 0}, .order = {{}, 1}};
  policy.posted(demand, kMost);
  const auto grants = policy.collect(steady_now());
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].limit, kMost);
}

// Goal: the bound that everything rests on. Method: random posts, arrivals and requests of eight senders that send what they
// are granted, in random order. Relation: grants never pass what is posted, the sum in flight never passes the window,
// and in the end all arrives.
TEST(Credit, grants_stay_below_posts_and_window_and_all_arrives) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    CreditPolicy policy;
    std::vector<Demand> demands;
    std::vector<std::uint64_t> limit(8), sent(8);
    for (Rank peer = 0; peer < 8; ++peer) demands.push_back(demand_of(peer + 1, random() % 3, peer));
    int ms = 0;
    const auto step = [&] {
      const auto grants = policy.collect(tick(ms));
      for (const Granted& g : grants) {
        const std::size_t i = g.peer - 1;
        EXPECT_LE(g.limit, static_cast<std::uint64_t>(demands[i].posted));
        EXPECT_GT(g.limit, limit[i]);
        limit[i] = g.limit;
      }
      // The window may shrink under what was granted before; then nothing is granted.
      if (!grants.empty()) {
        EXPECT_LE(policy.outstanding(tick(ms)), policy.window());
      }
    };
    for (int i = 0; i < 2000; ++i) {
      const std::size_t at = random() % 8;
      if (random() % 4 == 0) policy.posted(demands[at], 1 + random() % 500'000);
      if (limit[at] > sent[at]) {
        const std::uint64_t bytes = std::min<std::uint64_t>(limit[at] - sent[at], 1 + random() % 200'000);
        sent[at] += bytes;
        policy.arrived(demands[at], bytes, tick(ms));
      }
      if (random() % 8 == 0) ++ms;
      step();
    }
    for (int i = 0; i < 100'000; ++i) {
      bool open = false;
      for (std::size_t at = 0; at < 8; ++at) {
        if (static_cast<std::uint64_t>(demands[at].posted) > sent[at]) {
          open = true;
          if (limit[at] == sent[at]) policy.asked(demands[at], sent[at]);
        }
        const std::uint64_t bytes = std::min<std::uint64_t>(limit[at] - sent[at], 100'000);
        sent[at] += bytes;
        policy.arrived(demands[at], bytes, tick(ms));
      }
      if (!open) break;
      ++ms;
      step();
    }
    for (std::size_t at = 0; at < 8; ++at) EXPECT_EQ(sent[at], static_cast<std::uint64_t>(demands[at].posted));
    for (Demand& demand : demands) policy.forget(demand);
    EXPECT_EQ(policy.outstanding(tick(ms)), 0u);
  }
}

TEST(Credit, a_stream_that_stands_still_does_not_hold_the_others_back) {
  CreditPolicy policy;
  Demand stuck = demand_of(1, 0, 1), other = demand_of(2, 1, 2);
  policy.posted(stuck, 64 << 20);
  policy.posted(other, 1 << 20);
  const auto first = policy.collect(tick(0));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].peer, 1u);
  policy.forget(stuck);
  stuck = demand_of(1, 0, 3);
  policy.posted(stuck, first[0].limit);
  EXPECT_EQ(policy.collect(tick(1)).size(), 1u);
  EXPECT_TRUE(policy.collect(tick(3)).empty());
  EXPECT_TRUE(policy.may_come_to_stand());
  const auto later = policy.collect(tick(1) + policy.stale());
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].peer, 2u);
}

// Two send what they are granted, one a twentieth of what the other does: it is granted about that, however much is free, so that its link holds no long queue.
TEST(Credit, a_slow_sender_is_granted_about_twice_what_it_gives) {
  CreditPolicy policy;
  Demand fast = demand_of(1, 0, 1), slow = demand_of(2, 0, 2);
  policy.posted(fast, 1 << 30);
  policy.posted(slow, 1 << 30);
  constexpr std::uint64_t kFast = 200'000, kSlow = 10'000;  // a ms
  std::uint64_t limits[2] = {}, sent[2] = {};
  const auto collect = [&](int ms) {
    for (const Granted& grant : policy.collect(tick(ms))) limits[grant.peer - 1] = grant.limit;
  };
  const auto send = [&](Demand& demand, std::uint64_t most, int ms) {
    const std::size_t i = demand.peer - 1;
    const std::uint64_t bytes = std::min(limits[i] - sent[i], most);
    if (bytes == 0) return;
    sent[i] += bytes;
    policy.arrived(demand, bytes, tick(ms));
  };
  collect(0);
  for (int ms = 1; ms < 2000; ++ms) {
    send(fast, kFast, ms);
    send(slow, kSlow, ms);
    collect(ms);
    if (ms > 200) {
      EXPECT_LE(limits[1] - sent[1], policy.window() / 3) << ms;
      EXPECT_GE(limits[1] - sent[1], kSlow) << ms;  // and always has something to send
    }
  }
  policy.posted(slow, 1);
  for (int ms = 2000; ms < 9000; ++ms) {  // then it is quick, and the other has nothing more: it comes to all
    send(slow, kFast, ms);
    collect(ms);
  }
  EXPECT_GE(limits[1] - sent[1] + kFast, policy.window() / 2);
  policy.forget(fast);
  policy.forget(slow);
}

// Behind a queue nothing of what was granted can be there within a window's time: the stream does not stand, and is granted more as before.
TEST(Credit, a_stream_behind_a_queue_does_not_stand) {
  const auto granted_after = [](Nanoseconds round_trip) {
    CreditPolicy policy;
    policy.round_trip(1, round_trip);
    Demand demand = demand_of(1, 0, 1);
    policy.posted(demand, 1 << 30);
    std::uint64_t limit = 0;
    for (int ms = 0; ms <= 200; ++ms) {  // until the rate is known, in pieces
      for (const Granted& grant : policy.collect(tick(ms))) limit = grant.limit;
      policy.arrived(demand, std::min<std::uint64_t>(10'000, limit - static_cast<std::uint64_t>(demand.received)), tick(ms));
    }
    const Instant later = tick(200) + policy.stale() + 1ms;
    return policy.outstanding(later) > 0;
  };
  EXPECT_FALSE(granted_after(0ms));
  EXPECT_TRUE(granted_after(20ms));
}

// Data fills a link in both directions, each with a queue in which the other's grants wait: the window comes to cover both.
TEST(Credit, the_time_to_react_grows_with_the_queues_of_a_link) {
  const auto window_after = [](Nanoseconds round_trip) {
    CreditPolicy policy;
    policy.round_trip(1, round_trip);
    Demand demand = demand_of(1, 0, 1);
    policy.posted(demand, 1ull << 40);
    policy.collect(tick(0));
    for (int ms = 1; ms < 4000; ++ms) {  // as fast at first as never again
      policy.arrived(demand, ms < 500 ? 12'000 : 8'000, tick(ms));
      policy.collect(tick(ms));
    }
    const std::uint64_t window = policy.window();
    policy.forget(demand);
    return window;
  };
  EXPECT_LE(window_after(0ms), 12'100u * 10);
  EXPECT_GE(window_after(20ms), 12'000u * 30);
}

// What is produced last is needed first: its receiver asks for it before its sender has it, who meanwhile has something else.
TEST(Credit, an_urgent_stream_that_is_not_there_yet_leaves_the_link_to_another_of_the_same_sender) {
  CreditPolicy policy;
  Demand urgent = demand_of(1, 0, 1), other = demand_of(1, 1, 2);
  policy.posted(urgent, 64 << 20);
  policy.posted(other, 64 << 20);
  ASSERT_EQ(policy.collect(tick(0)).size(), 1u);
  EXPECT_EQ(policy.outstanding(tick(1)), policy.window());
  EXPECT_TRUE(policy.collect(tick(1)).empty());
  policy.dry(urgent);
  const auto later = policy.collect(tick(1));
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].tag, other.tag);
  EXPECT_TRUE(policy.collect(tick(1)).empty());  // what is dry gets no more
  policy.arrived(urgent, 1000, tick(2));         // now it comes: both count
  EXPECT_GT(policy.outstanding(tick(2)), policy.window());
  policy.dry(urgent);                            // that was all for now
  EXPECT_EQ(policy.outstanding(tick(2)), policy.window());
  policy.forget(urgent);
  policy.forget(other);
}

// What a dry stream was granted and used is granted again, in advance: its sender need not ask. Until it has said whether it has something that counts.
TEST(Credit, a_dry_stream_that_used_its_grant_is_granted_more) {
  CreditPolicy policy;
  Demand demand = demand_of(1, 0, 1);
  policy.posted(demand, 100'000);
  ASSERT_EQ(policy.collect(tick(0)).size(), 1u);
  policy.arrived(demand, 100'000, tick(1));
  policy.dry(demand);
  EXPECT_EQ(policy.outstanding(tick(1)), 0u);
  policy.posted(demand, 100'000);
  ASSERT_EQ(policy.collect(tick(1)).size(), 1u);
  EXPECT_EQ(policy.outstanding(tick(1)), 100'000u);
  policy.dry(demand);
  EXPECT_EQ(policy.outstanding(tick(1)), 0u);
  policy.forget(demand);
}

// Equals take turns at their sender: those whose turn is to come are granted no more meanwhile, however slow the link has become.
TEST(Credit, streams_that_wait_for_their_turn_at_a_busy_sender_do_not_stand) {
  CreditPolicy policy;
  std::vector<Demand> demands;
  for (std::uint64_t i = 0; i < 4; ++i) demands.push_back(demand_of(1, 1, i + 1));
  for (Demand& demand : demands) policy.posted(demand, 64 << 20);
  std::uint64_t granted = 0;
  for (const Granted& grant : policy.collect(tick(0))) granted += grant.limit;
  EXPECT_EQ(granted, policy.window());
  for (int ms = 1; ms < 1000; ++ms) {
    policy.arrived(demands[0], 100, tick(ms));
    EXPECT_LE(policy.outstanding(tick(ms)), granted);
    EXPECT_TRUE(policy.collect(tick(ms)).empty()) << ms;
  }
  for (Demand& demand : demands) policy.forget(demand);
}

TEST(Credit, where_nothing_moves_time_changes_nothing) {
  CreditPolicy policy;
  Demand demand = demand_of(1, 0, 1);
  policy.posted(demand, 64 << 20);
  policy.collect(tick(0));
  policy.collect(tick(1));
  EXPECT_TRUE(policy.may_come_to_stand());
  policy.collect(tick(1) + policy.stale());
  EXPECT_FALSE(policy.may_come_to_stand());
  policy.forget(demand);
}

TEST(Credit, another_start_is_adopted) {
  CreditPolicy policy;
  Demand demand = demand_of(1, 0, 1);
  policy.posted(demand, 100'000);
  ASSERT_EQ(policy.collect(tick(0)).size(), 1u);
  policy.asked(demand, 7'000'000);  // the sender remembers the stream, this side had forgotten it
  const auto grants = policy.collect(tick(0));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].base, 7'000'000u);
  EXPECT_EQ(grants[0].limit, 7'100'000u);
}

constexpr HealthLimits kLimits{500ms, 2s, 5s};

TEST(Health, silence_is_suspect_then_dead) {
  Health health(3, 0, kLimits, tick(0));
  for (int ms = 500; ms < 5000; ms += 500) {
    health.heard(2, tick(ms));
    const auto verdict = health.tick(tick(ms));
    EXPECT_EQ(verdict.suspects, ms == 2000 ? std::vector<Rank>{1} : std::vector<Rank>{});
    EXPECT_TRUE(verdict.dead.empty());
  }
  health.heard(2, tick(5000));
  const auto verdict = health.tick(tick(5000));
  EXPECT_EQ(verdict.dead, std::vector<Rank>{1});
  EXPECT_FALSE(verdict.cut_off);
}

TEST(Health, hearing_nobody_means_cut_off_except_between_two) {
  Health three(3, 0, kLimits, tick(0)), two(2, 0, kLimits, tick(0));
  for (int ms = 500; ms < 5000; ms += 500) three.tick(tick(ms)), two.tick(tick(ms));
  EXPECT_TRUE(three.tick(tick(5000)).cut_off);
  const auto verdict = two.tick(tick(5000));
  EXPECT_EQ(verdict.dead, std::vector<Rank>{1});
  EXPECT_FALSE(verdict.cut_off);
}

TEST(Health, who_stood_still_blames_nobody_for_that_time) {
  Health health(2, 0, kLimits, tick(0));
  health.tick(tick(500));
  EXPECT_TRUE(health.tick(tick(60'000)).dead.empty());
}

TEST(Health, who_left_is_not_missed) {
  Health health(2, 0, kLimits, tick(0));
  health.left(1);
  for (int ms = 500; ms < 20'000; ms += 500) EXPECT_TRUE(health.tick(tick(ms)).dead.empty());
}

}  // namespace
}  // namespace shoal::net
