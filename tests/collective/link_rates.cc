// Goal: what links give is known from the bytes that come anyway, whoever is late; a change is told once it is for good, and by all members alike.
// Method: real programs on a scripted network whose rates are the oracle, and tables of rates written by hand.
#include "shoal/collective/link_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "shoal/collective/hosts.h"
#include "shoal/collective/known_network.h"
#include "shoal/core/error.h"
#include "tests/collective/scripted_group.h"

namespace shoal::collective {
namespace {

using std::chrono::milliseconds;

constexpr double kNic = 25e6, kSlow = 5e6;  // bytes/s
constexpr net::ScriptedNetwork kEven{.delay_min = Nanoseconds(50'000), .delay_max = Nanoseconds(50'000), .rate = kNic, .frame = 4096};

double rate_of(const net::Trains& trains) { return trains.seconds > 0 ? static_cast<double>(trains.beside) / trains.seconds : 0; }

// What a member's link has given, as LinkRates has it.
double rate_of(net::InprocJob& job, net::Rank member, net::Rank members, net::Trains net::LinkStats::*trains) {
  double fastest = 0;
  for (net::Rank peer = 0; peer < members; ++peer) fastest = std::max(fastest, rate_of(job.member(member).link(peer).*trains));
  return fastest;
}

// `times` runs one after another; `late(rank)` is what a member computes before each of its own.
void run_often(ScriptedGroup& group, const Program& program, int times, std::uint64_t& operation,
               const std::function<Nanoseconds(std::uint32_t)>& late) {
  const Verified verified = verify(program);
  for (int i = 0; i < times; ++i) {
    Exercise<std::int32_t> exercise(program, 200'000, small_number);
    Run run;
    run.type = DType::i32;
    run.slice_bytes = 32 * 1024;
    run.operation = ++operation;
    for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
      const Nanoseconds after = late(rank);
      group.job.at(group.job.now() - Instant{} + after, [&, rank, run] { exercise.start(*group.runners[rank], verified, run); });
    }
    ASSERT_TRUE(group.job.run());
    exercise.expect_right(sum_in_rank_order);
  }
}

TEST(LinkRates, a_stream_is_as_fast_as_the_slower_of_two_links_however_late_its_sender_is) {
  net::InprocJob job(2, kEven);
  const std::vector<std::byte> piece(64 * 1024);
  std::vector<std::byte> into(piece.size());
  for (const double rate : {kNic, kSlow}) {
    job.rate(1, rate);
    const net::Trains before = job.member(1).link(0).in;
    const Instant began = job.now();
    for (int i = 0; i < 20; ++i) {
      job.member(1).receive(0, {1, 0}, {}, into, [](const net::Failure&) {});
      job.at(job.now() - Instant{} + milliseconds(100), [&] { job.member(0).send(1, {1, 0}, {}, piece, [](const net::Failure&) {}); });
      ASSERT_TRUE(job.run());
    }
    net::Trains now = job.member(1).link(0).in;
    now = {now.bytes - before.bytes, now.beside - before.beside, now.seconds - before.seconds};
    EXPECT_NEAR(rate_of(now), rate, 0.01 * rate);
    EXPECT_EQ(now.bytes, 20u * (16 - 1) * 4096);  // all but the first frame of each piece
    EXPECT_LT(20.0 * 64 * 1024 / Seconds(job.now() - began).count(), 0.2 * rate);  // which is what came in all
  }
}

TEST(LinkRates, flows_that_share_a_link_show_all_of_it) {
  net::InprocJob job(3, kEven);
  const std::vector<std::byte> all(4 << 20);
  std::vector<std::byte> into[2] = {all, all};
  for (const net::Rank from : {0u, 2u}) {
    job.member(1).receive(from, {1, 0}, {}, into[from / 2], [](const net::Failure&) {});
    job.member(from).send(1, {1, 0}, {}, all, [](const net::Failure&) {});
  }
  ASSERT_TRUE(job.run());
  for (const net::Rank from : {0u, 2u}) {
    const net::Trains trains = job.member(1).link(from).in;
    EXPECT_NEAR(rate_of(trains), kNic, 0.02 * kNic);
    EXPECT_NEAR(static_cast<double>(trains.bytes) / trains.seconds, kNic / 2, 0.02 * kNic);  // its own part
  }
}

// Members of which one has a slow link, and one begins late. What goes out is as fast as the member's own link; what comes in, too, but where all of it is from
// the slow one. Where flows of one member meet those of others (trees, direct), links are not full all the while that trains are on their way: less is seen.
TEST(LinkRates, programs_show_the_rates_of_links_whoever_is_slow_or_late) {
  for (const auto& [name, least] : {std::pair("ring", 0.98), {"chain", 0.95}, {"double_binary_tree", 0.6}, {"direct", 0.6}}) {
    const Program program = build(Collective::all_reduce, name, 4);
    for (const bool is_late : {false, true}) {
      ScriptedGroup group(4, kEven);
      group.job.rate(2, kSlow);
      std::uint64_t operation = 0;
      run_often(group, program, 4, operation, [&](std::uint32_t rank) -> Nanoseconds { return milliseconds(is_late && rank == 1 ? 50 : 0); });
      for (net::Rank rank = 0; rank < 4; ++rank) {
        bool hears_quick_ones = false;
        for (const net::Rank peer : {0u, 1u, 3u}) hears_quick_ones = hears_quick_ones || group.job.member(rank).link(peer).received > 0;
        for (const bool goes_out : {false, true}) {
          SCOPED_TRACE(std::string(name) + (is_late ? ", a late member" : "") + ", rank " + std::to_string(rank) + (goes_out ? " out" : " in"));
          const double rate = rank == 2 || (!goes_out && !hears_quick_ones) ? kSlow : kNic;
          const double seen = rate_of(group.job, rank, 4, goes_out ? &net::LinkStats::out : &net::LinkStats::in);
          EXPECT_LT(seen, 1.02 * rate);
          EXPECT_GT(seen, least * rate);
        }
      }
    }
  }
}

// --- what has changed, and when that is told

constexpr int kOneWindow = LinkRates::kWindow;

// What a member receives from member 1 in samples of these rates; returns after how many a change was told, 0: never.
class OneLink {
 public:
  template <class Rate>
  int samples_until_told(int most, Rate rate) {
    for (int i = 0; i < most; ++i) {
      totals_[1].received += LinkRates::kSample;
      totals_[1].in.bytes += LinkRates::kSample;
      totals_[1].in.beside += LinkRates::kSample;
      totals_[1].in.seconds += LinkRates::kSample / rate(i);
      for (const auto& change : rates_.look(totals_)) return told_ = change, i + 1;
    }
    return 0;
  }
  OneLink() { rates_.look(totals_); }
  LinkRates& rates() { return rates_; }
  const LinkRates::Change& told() const { return told_; }

 private:
  std::vector<net::LinkStats> totals_{2};
  LinkRates rates_{2};
  LinkRates::Change told_{};
};

TEST(LinkRates, a_change_for_good_is_told_after_two_windows_in_either_direction) {
  for (const double later : {kSlow, 2 * kNic}) {
    OneLink link;
    EXPECT_EQ(link.samples_until_told(100 * kOneWindow, [&](int i) { return i < 3 * kOneWindow ? kNic : later; }), 5 * kOneWindow);
    EXPECT_FALSE(link.told().goes_out);
    EXPECT_NEAR(link.told().now, later, 1e-6 * later);
    EXPECT_NEAR(link.told().was, kNic, 1e-6 * kNic);
    EXPECT_NEAR(link.rates().rates().in.first, kNic, 1e-6 * kNic);
    EXPECT_NEAR(link.rates().rates().in.now, later, 1e-6 * later);
    EXPECT_TRUE(link.rates().rates().in.carries);
    link.rates().begin_again();
    EXPECT_EQ(link.rates().rates(), LinkRatesOf());
  }
}

TEST(LinkRates, what_comes_and_goes_is_not_told) {
  OneLink swings, outliers;
  EXPECT_EQ(swings.samples_until_told(100 * kOneWindow, [](int i) { return i / kOneWindow % 2 == 0 ? kNic : kSlow; }), 0) << "every other window";
  EXPECT_EQ(outliers.samples_until_told(100 * kOneWindow, [](int i) { return i % 3 == 0 ? kNic / 50 : kNic; }), 0) << "a third of all samples";
}

TEST(LinkRates, noise_is_never_told_and_a_change_in_it_always_with_its_size) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    // A sixth up or down, and one in ten anything from a tenth to ten times.
    const auto noisy = [&](double rate, int i) {
      const double drawn = uniform(seed, static_cast<std::uint64_t>(i), 0, 0);
      return rate * (uniform(seed, static_cast<std::uint64_t>(i), 1, 0) < 0.1 ? std::pow(10, 2 * drawn - 1) : 1 + (2 * drawn - 1) / 6);
    };
    OneLink link;
    ASSERT_EQ(link.samples_until_told(50 * kOneWindow, [&](int i) { return noisy(kNic, i); }), 0) << "seed " << seed;
    const int told = link.samples_until_told(50 * kOneWindow, [&](int i) { return noisy(kSlow, 50 * kOneWindow + i); });
    ASSERT_EQ(told, 2 * kOneWindow) << "seed " << seed;
    ASSERT_NEAR(link.told().now, kSlow, 0.2 * kSlow) << "seed " << seed;
  }
}

TEST(LinkRates, shared_memory_and_what_brings_little_say_nothing) {
  LinkRates rates(2);
  std::vector<net::LinkStats> totals(2);
  rates.look(totals);
  totals[1].received = LinkRates::kSample;
  totals[1].in = {LinkRates::kSample, LinkRates::kSample, 0.01};
  EXPECT_TRUE(rates.look(totals).empty());
  EXPECT_EQ(rates.rates(), LinkRatesOf());
  for (int i = 0; i < 100; ++i) {
    totals[1].received += 1 << 20;
    totals[1].shared_memory = true;
    EXPECT_TRUE(rates.look(totals).empty());
  }
  EXPECT_EQ(rates.rates(), LinkRatesOf());
}

// --- what all members conclude

// Four hosts on a switch, and a model of them.
LinkModel four_hosts() {
  LinkModel link{.alpha = 1e-4, .rate = kNic, .add_rate = 8e9, .fan_in = 0.8 * kNic};
  topo::Topology star;
  star.hosts = {"a", "b", "c", "d"};
  star.switches = {"s"};
  for (topo::Node host = 0; host < 4; ++host) star.link_both_ways(host, 4, kNic);
  link.network = KnownNetwork::without_trees(star);
  return link;
}
double host_link(const LinkModel& model, std::uint32_t host, bool goes_out) {
  for (const topo::Link& link : model.network->topology().links) {
    if ((goes_out ? link.from : link.to) == host) return link.rate;
  }
  return 0;
}

TEST(LinkRates, what_is_told_is_heard) {
  const LinkRatesOf own{{1.0 / 3, 2e9, true}, {5, 0, false}};
  EXPECT_EQ(heard_rates(std::vector<std::string>(3, words(own))), std::vector<LinkRatesOf>(3, own));
  EXPECT_THROW(heard_rates(std::vector<std::string>{"1 2"}), Error);
}

constexpr LinkRate kSame{kNic, kNic, true}, kSlower{kNic, kSlow, true}, kFaster{kSlow, kNic, true};

TEST(LinkRates, a_host_that_has_become_slow_is_found_and_found_again_when_it_is_quick) {
  const auto known = four_hosts();
  std::vector<LinkRatesOf> seen(4, {kSame, kSame});
  seen[2] = {kSlower, kSlower};
  const auto now = as_seen(known, known, seen);
  ASSERT_TRUE(now);
  EXPECT_NEAR(now->rate, kSlow, 1);
  EXPECT_NEAR(now->fan_in, 0.8 * kSlow, 1);
  EXPECT_EQ(now->alpha, known.alpha);
  for (std::uint32_t host = 0; host < 4; ++host) {
    for (const bool goes_out : {false, true}) EXPECT_NEAR(host_link(*now, host, goes_out), host == 2 ? kSlow : kNic, 1) << host;
  }
  seen[2] = {kFaster, {kSlow, 4 * kNic, true}};  // flattered by short trains: no more than what was measured
  const auto later = as_seen(*now, known, seen);
  ASSERT_TRUE(later);
  EXPECT_NEAR(later->rate, kNic, 1);
  for (std::uint32_t host = 0; host < 4; ++host) {
    for (const bool goes_out : {false, true}) EXPECT_NEAR(host_link(*later, host, goes_out), kNic, 1) << host;
  }
}

TEST(LinkRates, in_a_ring_both_ends_of_a_slow_way_are_taken_to_be_slow) {
  const auto known = four_hosts();
  std::vector<LinkRatesOf> seen(4, {kSame, kSame});
  seen[1].out = seen[2].in = kSlower;
  const auto now = as_seen(known, known, seen);
  ASSERT_TRUE(now);
  for (std::uint32_t host = 0; host < 4; ++host) {
    EXPECT_NEAR(host_link(*now, host, true), host == 1 ? kSlow : kNic, 1) << host;
    EXPECT_NEAR(host_link(*now, host, false), host == 2 ? kSlow : kNic, 1) << host;
  }
}

TEST(LinkRates, what_explains_nothing_is_left_to_a_probe) {
  auto known = four_hosts();
  std::vector<LinkRatesOf> seen(4);
  EXPECT_FALSE(as_seen(known, known, seen)) << "nothing passed";
  seen.assign(4, {kSame, kSame});
  EXPECT_FALSE(as_seen(known, known, seen)) << "nothing has changed";
  seen[1].out = kSlower;
  EXPECT_TRUE(as_seen(known, known, seen));
  seen[0].in.first = 0;
  EXPECT_FALSE(as_seen(known, known, seen)) << "one that matters is not known";
  seen[0].in.carries = false;
  EXPECT_TRUE(as_seen(known, known, seen));
  known.network = KnownNetwork::without_trees(network_of({0, 0, 1, 1}, 1e9, kNic));
  EXPECT_FALSE(as_seen(known, known, seen)) << "members share a host's link";
  known.network = nullptr;
  EXPECT_TRUE(as_seen(known, known, seen)) << "the slowest link counts where no network is known";
}

}  // namespace
}  // namespace shoal::collective
