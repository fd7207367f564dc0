// Losses in simulated time against closed forms: what those who are left do takes the sum of its parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "shoal/core/error.h"
#include "shoal/sim/named_program.h"
#include "shoal/sim/plan_traffic.h"
#include "tests/refusal.h"
#include "tests/sim/networks.h"

namespace shoal::sim {
namespace {

constexpr double kBytes = 12e6, kLatency = 1e-4;
constexpr Nanoseconds kHop = std::chrono::microseconds(100);

// Of a ring on a star, and of what all tell each other at its end.
double ring(double members) { return 2 * (members - 1) / members * kBytes / kRate + 2 * (members - 1) * kLatency; }
double ring_held(double members) { return ring(members) + (members > 1 ? kLatency : 0); }

Job named_job(const std::string& builder, std::uint32_t ranks, collective::Collective collective = collective::Collective::all_reduce,
              double bytes = kBytes) {
  const NamedProgram named = named_program(collective, builder, ranks);
  Job of = job(*named.program, bytes);
  of.program = named.program;
  of.fewer = named.fewer;
  return of;
}

Recovery free_of_proofs() {
  Recovery recovery;
  recovery.proof_seconds = 0;
  return recovery;
}
Recovery rejoining(double state_bytes) {
  Recovery recovery = free_of_proofs();
  recovery.rejoin = true;
  recovery.state_bytes = state_bytes;
  return recovery;
}
Fault killed(topo::Node host, double at) { return {.kind = Fault::Kind::killed, .at = at, .host = host, .links = {}}; }
Fault stopped(topo::Node host, double at) { return {.kind = Fault::Kind::stopped, .at = at, .host = host, .links = {}}; }

Outcome struck(const std::vector<Job>& jobs, std::vector<Fault> faults, const Recovery& recovery = free_of_proofs(), topo::Node hosts = 4) {
  return simulate(star(hosts, kRate, kHop), jobs, {}, Costs::links_only(), false, {recovery, std::move(faults)});
}

TEST(Recovery, where_members_may_be_lost_all_tell_each_other_what_they_hold) {
  const Outcome outcome = struck({named_job("ring", 4)}, {});
  expect_near(outcome.seconds, ring_held(4));
  EXPECT_TRUE(outcome.faults.empty());
}

TEST(Recovery, a_killed_member_is_known_by_its_connections_and_the_others_begin_again) {
  const double at = ring(4) / 2;
  const Outcome outcome = struck({named_job("ring", 4)}, {killed(1, at)});
  ASSERT_EQ(outcome.faults.size(), 1U);
  EXPECT_EQ(outcome.faults[0].lost, std::vector<topo::Node>{1});
  EXPECT_DOUBLE_EQ(outcome.faults[0].agreed, at + 2 * kLatency);
  EXPECT_DOUBLE_EQ(outcome.faults[0].resumed, at + 2 * kLatency);
  EXPECT_EQ(outcome.faults[0].again, 1U);
  EXPECT_DOUBLE_EQ(outcome.faults[0].undone, at + 2 * kLatency);
  expect_near(outcome.seconds, at + 2 * kLatency + ring_held(3));
  EXPECT_TRUE(std::isinf(outcome.jobs[0].finished[1]));
}

TEST(Recovery, programs_for_fewer_are_proved_first) {
  Recovery recovery = free_of_proofs();
  recovery.proof_seconds = 1e-3;
  std::uint64_t ops = 0;
  for (const auto& lanes : collective::ring_all_reduce(3).lanes) {
    for (const auto& lane : lanes) {
      for (const auto& loop : lane) ops += loop.times * loop.ops.size();
    }
  }
  const Outcome outcome = struck({named_job("ring", 4)}, {killed(1, 0.05)}, recovery);
  EXPECT_DOUBLE_EQ(outcome.faults[0].resumed, outcome.faults[0].agreed + 1e-3 * static_cast<double>(ops));
  expect_near(outcome.seconds, outcome.faults[0].resumed + ring_held(3));
}

TEST(Recovery, a_stopped_member_is_known_by_its_silence) {
  const Outcome outcome = struck({named_job("ring", 4)}, {stopped(3, 0.05)});
  EXPECT_DOUBLE_EQ(outcome.faults[0].agreed, 0.05 + 4.25 + kLatency);
  expect_near(outcome.seconds, 0.05 + 4.25 + kLatency + ring_held(3));
}

// Whoever did not hear that all hold it learns so from the votes: also when the lost one held nothing itself.
TEST(Recovery, what_all_who_are_left_hold_is_not_done_again) {
  const Outcome late = struck({named_job("ring", 4)}, {killed(1, ring(4) + kLatency / 2)});
  EXPECT_EQ(late.faults[0].again, 0U);
  expect_near(late.seconds, ring_held(4));

  topo::Topology topology = star(3, kRate, kHop);
  for (topo::Link& link : topology.links) {
    if (link.to == 2) link.latency = std::chrono::seconds(1);
  }
  const std::vector<Job> jobs{named_job("chain", 3, collective::Collective::broadcast)};
  const Outcome far = simulate(topology, jobs, {}, Costs::links_only(), false, {free_of_proofs(), {killed(2, 0.5)}});
  EXPECT_EQ(far.faults[0].again, 0U);
  EXPECT_DOUBLE_EQ(far.seconds, 0.5 + 2 * kLatency);
}

TEST(Recovery, another_loss_is_agreed_about_with_the_first) {
  const Outcome apart = struck({named_job("ring", 4)}, {killed(1, 0.05), killed(0, 0.1)});
  expect_near(apart.seconds, 0.1 + 2 * kLatency + ring_held(2));
  EXPECT_EQ(apart.faults[1].again, 1U);
  // Nobody can vote without the silent one before it is missed.
  const Outcome together = struck({named_job("ring", 4)}, {stopped(1, 0.05), killed(0, 0.1)});
  EXPECT_DOUBLE_EQ(together.faults[1].agreed, 0.05 + 4.25 + kLatency);
  EXPECT_DOUBLE_EQ(together.faults[0].resumed, together.faults[1].resumed);
  expect_near(together.seconds, 0.05 + 4.25 + kLatency + ring_held(2));
}

TEST(Recovery, the_last_one_goes_on_alone_and_nobody_is_an_end) {
  const Outcome alone = struck({named_job("ring", 2)}, {killed(0, 0.05)}, free_of_proofs(), 2);
  EXPECT_NEAR(alone.seconds, 0.05 + kLatency, 1e-3);
  const Outcome none = struck({named_job("ring", 2)}, {killed(0, 0.05), killed(1, 0.06)}, free_of_proofs(), 2);
  EXPECT_TRUE(std::isinf(none.jobs[0].finished[0]));
}

TEST(Recovery, later_runs_are_by_those_who_are_left) {
  std::vector<Job> jobs(3, named_job("ring", 4));
  jobs[1].after = {{0}};
  jobs[2].after = {{1}};
  jobs[1].start = jobs[2].start = 0.5;
  const Outcome during = struck(jobs, {killed(1, 0.05)});
  expect_near(during.seconds, 0.05 + 2 * kLatency + 3 * ring_held(3) + 2 * 0.5);
  const Outcome between = struck(jobs, {killed(1, ring_held(4) + 0.25)});
  EXPECT_EQ(between.faults[0].again, 0U);
  expect_near(between.seconds, ring_held(4) + 2 * ring_held(3) + 2 * 0.5);
}

// One phase after the other, each simulated by itself; but a slice a pair that had left its sender still comes.
TEST(Recovery, every_builder_begins_again_as_if_nothing_had_been) {
  for (const std::string builder : {"ring", "direct", "chain", "halving_doubling", "swing"}) {
    for (const std::uint32_t ranks : {2U, 3U, 5U, 8U}) {
      for (const std::uint32_t victim : {0U, ranks - 1}) {
        const auto sum_of = [&](std::uint32_t members) { return named_job(builder, members, collective::Collective::all_reduce, 20 * kBytes); };
        const Job all = sum_of(ranks);
        const double length = simulate_one(star(ranks, kRate, kHop), all).seconds;
        const double left = simulate_one(star(ranks, kRate, kHop), sum_of(ranks - 1)).seconds;
        const Outcome outcome = struck({all}, {killed(victim, length / 3)}, free_of_proofs(), ranks);
        const double votes = ranks > 2 ? 2 * kLatency : kLatency, held = ranks > 2 ? kLatency : 0;
        EXPECT_NEAR(outcome.seconds, length / 3 + votes + left + held, 0.01 * length) << builder << " " << ranks << " without " << victim;
      }
    }
  }
}

constexpr double kState = 25e6;
// From the kill until so many newcomers have the state: a chain hands slices on, so that its length costs latencies alone.
double until_all_have_it(const Recovery& recovery, double newcomers = 1) {
  return recovery.restart_seconds + recovery.join_seconds + kState / kRate + newcomers * kLatency + kState * recovery.state_seconds_per_byte;
}

TEST(Recovery, a_step_waits_for_who_comes_in_a_lost_place_and_takes_over_the_state) {
  const Recovery recovery = rejoining(kState);
  const Outcome outcome = struck({named_job("ring", 4)}, {killed(2, 0.05)}, recovery);
  expect_near(outcome.faults[0].resumed, 0.05 + until_all_have_it(recovery));
  EXPECT_EQ(outcome.faults[0].again, 1U);
  expect_near(outcome.seconds, 0.05 + until_all_have_it(recovery) + ring_held(4));
  for (const double finished : outcome.jobs[0].finished) EXPECT_TRUE(std::isfinite(finished));
}

// What came into each host, when the sum is begun long after: of the state nothing into those who have it.
TEST(Recovery, the_state_goes_to_none_but_who_came) {
  Job late = named_job("ring", 4);
  late.start = 10;
  const Outcome outcome = struck({late}, {killed(1, 0.05), killed(2, 0.05)}, rejoining(kState));
  const auto into = [&](topo::Node host) { return outcome.links[2 * host + 1].bytes; };
  const double sum = 2 * 3 * kBytes / 4;
  EXPECT_NEAR(into(0), sum, 1);
  EXPECT_NEAR(into(1), sum + kState, 1);
  EXPECT_NEAR(into(2), sum + kState, 1);
  EXPECT_NEAR(into(3), sum, 1);
}

TEST(Recovery, between_steps_the_next_one_waits) {
  std::vector<Job> jobs(2, named_job("ring", 4));
  jobs[1].after = {{0}};
  jobs[1].start = 0.5;
  const Recovery recovery = rejoining(kState);
  const double at = ring_held(4) + 0.25;
  const Outcome outcome = struck(jobs, {killed(2, at)}, recovery);
  EXPECT_EQ(outcome.faults[0].again, 0U);
  // What it was to compute before its second sum it has not computed.
  expect_near(outcome.seconds, at + until_all_have_it(recovery) + 0.5 + ring_held(4));
}

TEST(Recovery, who_is_silent_is_ended_when_the_others_have_given_it_up) {
  const Recovery recovery = rejoining(kState);
  const Outcome outcome = struck({named_job("ring", 4)}, {stopped(2, 0.05)}, recovery);
  expect_near(outcome.seconds, 0.05 + 4.25 + kLatency + until_all_have_it(recovery) + ring_held(4));
}

// While the state travels to the first newcomer its source is killed.
TEST(Recovery, any_may_be_lost_again_while_one_is_left_that_has_the_state) {
  const Recovery recovery = rejoining(kState);
  const double again = 0.05 + recovery.restart_seconds + recovery.join_seconds + 0.1;
  const Outcome outcome = struck({named_job("ring", 4)}, {killed(2, 0.05), killed(0, again)}, recovery);
  expect_near(outcome.seconds, again + until_all_have_it(recovery, 2) + ring_held(4));
  EXPECT_DOUBLE_EQ(outcome.faults[0].resumed, outcome.faults[1].resumed);
}

// Three hosts here, two there: of two parts that do not hear each other the smaller goes.
TEST(Recovery, behind_a_cut_link_the_smaller_part_goes) {
  topo::Topology topology = hosts_and_switches(5, 2);
  for (topo::Node host = 0; host < 5; ++host) topology.link_both_ways(host, host == 0 || host == 3 ? 6 : 5, kRate, kHop / 2);
  topology.link_both_ways(5, 6, kRate);
  const auto first = static_cast<std::uint32_t>(topology.links.size() - 2);
  const Fault cut{.kind = Fault::Kind::cut, .at = 0.05, .host = 0, .links = {first, first + 1}};
  const std::vector<Job> jobs{named_job("ring", 5)};
  const std::vector<Transfer> others{{.from = 1, .to = 2, .bytes = 1e6}, {.from = 1, .to = 3, .bytes = 1e9}};
  Outcome outcome = simulate(topology, jobs, others, Costs::links_only(), false, {free_of_proofs(), {cut}});
  std::ranges::sort(outcome.faults[0].lost);
  EXPECT_EQ(outcome.faults[0].lost, (std::vector<topo::Node>{0, 3}));
  expect_near(outcome.seconds, 0.05 + 4.25 + kLatency + ring_held(3));
  EXPECT_TRUE(std::isfinite(outcome.transfers[0]));
  EXPECT_TRUE(std::isinf(outcome.transfers[1]));
  EXPECT_LT(outcome.links[first].bytes, 0.06 * kRate);
}

TEST(Recovery, a_slow_link_and_a_slow_host_are_slow_from_then_on) {
  const topo::Topology topology = star(2, kRate);
  const std::vector<Transfer> transfers{{.from = 0, .to = 1, .bytes = kRate}};
  const Fault slow{.kind = Fault::Kind::slow_link, .at = 0.25, .host = 0, .links = {0, 1}, .rate = kRate / 4};
  const Outcome outcome = simulate(topology, {}, transfers, Costs::links_only(), false, {{}, {slow}});
  EXPECT_DOUBLE_EQ(outcome.seconds, 0.25 + 0.75 * 4);
  EXPECT_DOUBLE_EQ(outcome.links[0].bytes, kRate);

  Costs costs = Costs::links_only();
  costs.add_rate = 1e9;
  const auto copying = [&](double factor) {
    const std::vector<Job> jobs{named_job("ring", 1)};
    const Fault fault{.kind = Fault::Kind::slow_host, .at = 0, .host = 0, .links = {}, .factor = factor};
    Job later = jobs[0];
    later.start = 1;
    return simulate(star(1, kRate), std::span(&later, 1), {}, costs, false, {{}, {fault}}).seconds - 1;
  };
  EXPECT_NEAR(copying(1), kBytes / 1e9, 1e-9);
  EXPECT_NEAR(copying(3), 3 * kBytes / 1e9, 1e-9);
}

// Goal: no order of losses leaves anybody waiting. Method: drawn runs and faults, some at one moment, by fewer and with others in lost places. Expected:
// who is not lost ends, all end where others come, and nobody goes on before all have agreed.
TEST(Recovery, whoever_is_lost_when_the_others_end) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::uint32_t ranks = 2 + random() % 5;
    const char* const builders[] = {"ring", "direct", "chain", "halving_doubling"};
    std::vector<Job> jobs(1 + random() % 3, named_job(builders[seed % 4], ranks));
    for (std::uint32_t i = 1; i < jobs.size(); ++i) {
      jobs[i].together = random() % 3 == 0;
      if (!jobs[i].together) jobs[i].after = {{i - 1}};
    }
    const Recovery recovery = seed % 2 == 0 ? free_of_proofs() : rejoining(random() % 2 * 5e6);
    std::vector<Fault> faults;
    for (std::uint32_t i = random() % 4; i > 0; --i) {
      const double at = random() % 8 * (seed % 2 == 0 ? 0.05 : 0.4);
      faults.push_back(random() % 4 == 0 ? stopped(random() % ranks, at) : killed(random() % ranks, at));
    }
    std::ranges::stable_sort(faults, {}, &Fault::at);
    Outcome outcome;
    try {
      outcome = struck(jobs, faults, recovery, ranks);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("nobody is left that has the state"), std::string::npos) << error.what();
      continue;
    }
    std::vector<bool> lost(ranks);
    for (const FaultOutcome& fault : outcome.faults) {
      for (const topo::Node host : fault.lost) lost[host] = !recovery.rejoin;
      EXPECT_TRUE(std::isinf(fault.resumed) || fault.agreed <= fault.resumed);
    }
    for (const JobOutcome& job : outcome.jobs) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_TRUE(lost[rank] || std::isfinite(job.finished[rank])) << rank;
    }
  }
}

// Goal: an iteration of a plan is one operation. Method: its first unit is everybody's when a member is killed in the second.
TEST(Recovery, a_step_of_training_travels_once_more_as_a_whole) {
  PlanTraffic traffic;
  traffic.plan.ranks = 4;
  traffic.plan.forward_seconds = traffic.plan.backward_seconds = traffic.plan.step_seconds = 0.1;
  traffic.plan.tensors.resize(2);
  for (exchange::TensorSpec& tensor : traffic.plan.tensors) tensor.count = 3'000'000;
  traffic.plan.tensors[0].backward_at = 0;
  traffic.plan.tensors[1].backward_at = 0.1;
  traffic.plan.units.resize(2);
  traffic.plan.units[0] = {.tensors = {0}, .way = "ring", .priority = 1};
  traffic.plan.units[1] = {.tensors = {1}, .way = "ring", .priority = 0};
  traffic.hosts = {0, 1, 2, 3};
  traffic.iterations = 2;
  std::vector<Job> jobs;
  add_jobs(traffic, jobs);
  const Outcome outcome = simulate(star(4, kRate), jobs, {}, Costs::links_only(), false, {free_of_proofs(), {killed(3, 0.35)}});
  const double unit = 2 * 2 / 3.0 * kBytes / kRate;
  EXPECT_EQ(outcome.faults[0].again, 1U);
  expect_near(outcome.seconds, 0.35 + 2 * unit + 0.1 + 0.1 + 2 * unit);
}

TEST(Recovery, what_nobody_can_go_on_from_is_refused_in_one_line) {
  const Job one = named_job("ring", 4);
  Job fixed = one;
  fixed.fewer = nullptr;
  fixed.name = "of a file";
  EXPECT_EQ(refusal([&] { struck({fixed}, {killed(0, 0.05)}); }), "of a file: cannot be done by fewer members");
  EXPECT_EQ(refusal([&] { struck({named_job("flat", 4, collective::Collective::broadcast)}, {killed(0, 0.05)}); }),
            "program flat: its root is lost, and nobody can take its place");
  EXPECT_EQ(refusal([&] { struck({one}, {killed(0, 0.05), killed(1, 0.05), killed(2, 0.05), killed(3, 0.05)}, rejoining(1e6)); }),
            "fault 3: nobody is left that has the state");
  EXPECT_EQ(refusal([&] { simulate(star(4, kRate), std::span(&one, 1), {}, {}, false, {{}, {killed(0, 0.05)}}); }),
            "fault 0: nothing says what those who are left do");
  EXPECT_EQ(refusal([&] { struck({one}, {killed(0, 0.05), killed(1, 0.01)}); }), "fault 1: its time is none, or before that of the fault in front of it");
  EXPECT_EQ(refusal([&] { struck({one}, {killed(4, 0.05)}); }), "fault 0: host 4 of 4");
  EXPECT_EQ(refusal([&] { struck({named_job("ring", 513)}, {}, free_of_proofs(), 513); }), "faults: 513 hosts; where members may be lost 512 are allowed");
}

}  // namespace
}  // namespace shoal::sim
