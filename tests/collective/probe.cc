// The probes on a scripted network, whose rate and delay are known: members agree on one answer, and it is near the truth.
#include "shoal/collective/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

constexpr Nanoseconds kDelay = std::chrono::microseconds(100);
constexpr double kRate = 25e6;
constexpr std::uint64_t kOperation = 1000;

net::ScriptedNetwork even_network() { return {.delay_min = kDelay, .delay_max = kDelay, .rate = kRate, .frame = 8192}; }

// A lab's links of 20 Mbit/s.
constexpr double kSlowRate = 2.5e6, kSlowBurst = 131072;
net::ScriptedNetwork slow_buckets() {
  net::ScriptedNetwork slow = even_network();
  slow.rate = kSlowRate;
  slow.burst = kSlowBurst;
  return slow;
}

struct ProbeAnswer {
  int times = 0;
  net::Failure why;
  LinkModel link;
  PairMatrix pairs;
};

template <class Begin>
std::vector<ProbeAnswer> ask_all(std::uint32_t ranks, Begin begin, const net::ScriptedNetwork& network = even_network(),
                                 const std::function<void(ScriptedGroup&)>& script = {}) {
  std::vector<ProbeAnswer> answers(ranks);
  ScriptedGroup group(ranks, network);
  if (script) script(group);
  for (net::Rank rank = 0; rank < ranks; ++rank) begin(*group.runners[rank], answers[rank]);
  group.job.run([&] { return std::all_of(answers.begin(), answers.end(), [](const ProbeAnswer& a) { return a.times > 0; }); });
  return answers;
}

void begin_probe_at(std::uint64_t operation, Runner& runner, ProbeAnswer& answer) {
  probe(runner, operation, Instant{} + std::chrono::seconds(30), [&answer](const net::Failure& why, const LinkModel& link) {
    ++answer.times;
    answer.why = why;
    answer.link = link;
  });
}
void begin_probe(Runner& runner, ProbeAnswer& answer) { begin_probe_at(kOperation, runner, answer); }
void begin_pairs(Runner& runner, ProbeAnswer& answer) {
  probe_pairs(runner, kOperation, Instant{} + std::chrono::seconds(30),
              [&answer](const net::Failure& why, const PairMatrix& pairs) {
                ++answer.times;
                answer.why = why;
                answer.pairs = pairs;
              });
}

TEST(Probe, all_members_agree_on_the_links_figures) {
  for (std::uint32_t ranks : {2u, 4u}) {
    const auto answers = ask_all(ranks, begin_probe);
    for (const ProbeAnswer& answer : answers) {
      ASSERT_EQ(answer.times, 1);
      ASSERT_FALSE(answer.why) << answer.why->what();
      EXPECT_EQ(answer.link.alpha, answers[0].link.alpha);
      EXPECT_EQ(answer.link.rate, answers[0].link.rate);
      EXPECT_EQ(answer.link.add_rate, answers[0].link.add_rate);
      EXPECT_EQ(answer.link.fan_in, answers[0].link.fan_in);
      EXPECT_EQ(answer.link.saves, 0);
    }
    EXPECT_GE(answers[0].link.alpha, 50e-6);
    EXPECT_LE(answers[0].link.alpha, 200e-6);
    EXPECT_GE(answers[0].link.rate, 0.8 * kRate);
    EXPECT_LE(answers[0].link.rate, 1.02 * kRate);
  }
}

// Where latency is most of what a sum takes, none is sooner for a pause.
TEST(Probe, a_far_link_saves_nothing_up) {
  net::ScriptedNetwork far = even_network();
  far.delay_min = far.delay_max = std::chrono::milliseconds(25);
  for (const ProbeAnswer& answer : ask_all(2, begin_probe, far)) {
    ASSERT_FALSE(answer.why) << answer.why->what();
    EXPECT_EQ(answer.link.saves, 0);
  }
}

TEST(Probe, what_a_link_saves_up_is_found) {
  for (const double burst : {100e3, 400e3, 2e6}) {
    net::ScriptedNetwork bucket = even_network();
    bucket.burst = burst;
    for (const ProbeAnswer& answer : ask_all(2, begin_probe, bucket)) {
      ASSERT_FALSE(answer.why) << answer.why->what();
      EXPECT_NEAR(answer.link.saves, burst, 0.1 * burst);
    }
  }
}

// A member held up once is behind the others from then on: it has bytes on its link when it has all of theirs. What a slow link saves up is found all the same.
TEST(Probe, what_a_slow_link_saves_up_is_found_out_of_step) {
  for (const std::uint32_t ranks : {2u, 4u}) {
    for (const int moment : {0, 300, 2000}) {  // ms: of latencies, of rates, of what is saved up
      const auto held_up = [moment](ScriptedGroup& group) {
        group.job.at(std::chrono::milliseconds(moment), [&group] { group.job.rate(0, 0.04 * kSlowRate); });
        group.job.at(std::chrono::milliseconds(moment + 20), [&group] { group.job.rate(0, kSlowRate); });
      };
      for (const ProbeAnswer& answer : ask_all(ranks, begin_probe, slow_buckets(), held_up)) {
        ASSERT_FALSE(answer.why) << answer.why->what();
        EXPECT_NEAR(answer.link.saves, kSlowBurst, 0.1 * kSlowBurst) << ranks << " members, " << moment << " ms";
      }
    }
  }
}

// Goal: a probe keeps to its range of operation numbers. Method: two in a row where one needs the most, by links that save up much for their rate; a number
// that both use is one of an operation that has ended, and the second probe stands still.
TEST(Probe, two_in_a_row_share_no_number) {
  const auto twice = [](Runner& runner, ProbeAnswer& answer) {
    probe(runner, kOperation, Instant{} + std::chrono::seconds(30), [&runner, &answer](const net::Failure& first, const LinkModel&) {
      EXPECT_FALSE(first) << first->what();
      begin_probe_at(kOperation + kProbeOperations, runner, answer);
    });
  };
  for (const ProbeAnswer& answer : ask_all(2, twice, slow_buckets())) {
    ASSERT_FALSE(answer.why) << answer.why->what();
    EXPECT_NEAR(answer.link.saves, kSlowBurst, 0.1 * kSlowBurst);
  }
}

// Sums behind pauses that are quicker than those before only because the link has become quicker are no bucket's.
TEST(Probe, a_link_that_becomes_quicker_saves_nothing_up) {
  static constexpr std::uint32_t kRanks = 2;
  static constexpr Nanoseconds kRateKnown = std::chrono::milliseconds(700);
  const auto becomes_quicker = [](ScriptedGroup& group) {
    group.job.at(kRateKnown, [&group] {
      for (net::Rank rank = 0; rank < kRanks; ++rank) group.job.rate(rank, 1.5 * kRate);
    });
  };
  for (const ProbeAnswer& answer : ask_all(kRanks, begin_probe, even_network(), becomes_quicker)) {
    ASSERT_FALSE(answer.why) << answer.why->what();
    EXPECT_LE(answer.link.rate, 1.02 * kRate);  // it was agreed on before
    EXPECT_EQ(answer.link.saves, 0);
  }
}

TEST(Probe, a_member_alone_needs_no_network) {
  const auto answers = ask_all(1, begin_probe);
  EXPECT_EQ(answers[0].times, 1);
  EXPECT_FALSE(answers[0].why);
  EXPECT_GT(answers[0].link.add_rate, 0);
}

TEST(Probe, every_pair_has_its_latency_and_rates) {
  for (std::uint32_t ranks : {1u, 2u, 3u}) {
    const auto answers = ask_all(ranks, begin_pairs);
    for (const ProbeAnswer& answer : answers) {
      ASSERT_EQ(answer.times, 1);
      ASSERT_FALSE(answer.why) << answer.why->what();
      for (std::uint32_t from = 0; from < ranks; ++from) {
        for (std::uint32_t to = 0; to < ranks; ++to) {
          const PairFigures& pair = answer.pairs.at(from, to);
          if (from == to) continue;
          EXPECT_NEAR(pair.latency, 100e-6, 5e-6);
          EXPECT_NEAR(pair.rate_alone, kRate, 0.05 * kRate);
          EXPECT_NEAR(pair.rate_together, kRate, 0.05 * kRate);
          EXPECT_EQ(pair.rate_alone, answers[0].pairs.at(from, to).rate_alone);
        }
      }
    }
  }
}

TEST(Probe, a_missing_member_is_a_timeout_and_a_dead_one_a_loss) {
  for (const bool pairs : {false, true}) {
    for (const bool dead : {false, true}) {
      ScriptedGroup group(3, even_network());
      if (dead) group.job.at(std::chrono::milliseconds(20), [&] { group.job.kill(2); });
      std::vector<ProbeAnswer> answers(3);
      for (net::Rank rank : {0u, 1u, 2u}) {
        if (rank == 2 && !dead) continue;
        (pairs ? begin_pairs : begin_probe)(*group.runners[rank], answers[rank]);
      }
      EXPECT_TRUE(group.job.run());
      for (net::Rank rank : {0u, 1u}) {
        ASSERT_EQ(answers[rank].times, 1);
        ASSERT_TRUE(answers[rank].why);
        EXPECT_EQ(answers[rank].why->code(), dead ? Code::peer_lost : Code::timeout) << answers[rank].why->what();
      }
    }
  }
}

}  // namespace
}  // namespace shoal::collective
