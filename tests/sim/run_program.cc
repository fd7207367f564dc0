// Programs in simulated time, against closed forms.
#include "shoal/sim/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "tests/refusal.h"
#include "tests/sim/networks.h"

namespace shoal::sim {
namespace {

using namespace std::chrono_literals;
using collective::Collective;

double seconds(const std::string& program, std::uint32_t ranks, double bytes, const Costs& costs = Costs::links_only(),
               Nanoseconds latency = 0ns, Collective collective = Collective::all_reduce) {
  return simulate_one(star(ranks, kRate, latency), job(collective::build(collective, program, ranks), bytes), costs).seconds;
}

// The rates alone: 2 (N - 1) / N vectors a member through its link, each direction busy all the time.
TEST(RunProgram, programs_of_least_bytes_take_what_the_links_need) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 8U, 16U}) {
    for (const double bytes : {1e6, 64e6}) {
      const double expected = 2.0 * (ranks - 1) / ranks * bytes / kRate;
      expect_near(seconds("ring", ranks, bytes), expected);
      if ((ranks & (ranks - 1)) == 0) expect_near(seconds("halving_doubling", ranks, bytes), expected);
      expect_near(seconds("ring", ranks, bytes, Costs::links_only(), 0ns, Collective::all_gather), expected / 2);
    }
  }
}

TEST(RunProgram, direct_takes_what_the_links_need) {
  for (const std::uint32_t ranks : {2U, 4U, 8U, 16U}) {
    const double expected = 2.0 * (ranks - 1) / ranks * 64e6 / kRate;
    expect_near(seconds("direct", ranks, 64e6), expected);
    expect_near(seconds("direct", ranks, 64e6, Costs::links_only(), 0ns, Collective::all_to_all), expected / 2);
  }
}

// Two vectors through every inner member's link, and the pipeline up and down the line: at most the 2N - 3 slices of the closed form
// (docs/collectives.md), which lets no slice go up and down at once; at least N - 2.
TEST(RunProgram, a_chain_takes_two_vectors_and_its_pipeline) {
  for (const std::uint32_t ranks : {3U, 4U, 8U}) {
    const double slice = 131072, bytes = 32 * slice, taken = seconds("chain", ranks, bytes) * kRate;
    EXPECT_LE(taken, (2 * bytes + (2.0 * ranks - 3) * slice) * 1.0001);
    EXPECT_GE(taken, (2 * bytes + (ranks - 2.0) * slice) * 0.9999);
  }
}

TEST(RunProgram, each_step_costs_its_latency_and_both_threads) {
  Costs costs = Costs::links_only();
  for (const std::uint32_t ranks : {2U, 4U, 8U}) {
    const double bytes = 1000.0 * ranks, steps = 2.0 * (ranks - 1);
    expect_near(seconds("ring", ranks, bytes, costs, 200us), steps * (200e-6 + 1000 / kRate));
    costs.message_seconds = 10e-6;
    expect_near(seconds("ring", ranks, bytes, costs, 200us), steps * (220e-6 + 1000 / kRate));
    costs.add_rate = 1e8;
    expect_near(seconds("ring", ranks, bytes, costs, 200us), steps * (220e-6 + 1000 / kRate) + (ranks - 1) * 1000 / 1e8);
    costs = Costs::links_only();
  }
}

TEST(RunProgram, goodput_and_host_copies_are_rates) {
  Costs costs = Costs::links_only();
  costs.goodput = 0.5;
  expect_near(seconds("ring", 4, 1e6, costs), 2 * 1.5e6 / kRate);
  // What a host sends and what it receives cost its one thread: 2e-8 s a byte are 50 MB/s for both together.
  costs = Costs::links_only();
  costs.host_seconds_per_byte = 2e-8;
  expect_near(seconds("ring", 4, 1e6, costs), 1.5e6 / 25e6);
}

// A line has no way around: every hop of the ring's last member goes back through all others, on links that nobody uses.
TEST(RunProgram, transfers_pass_through_hosts_where_no_switch_is) {
  topo::Topology line = hosts_and_switches(4, 0);
  for (topo::Node host = 0; host < 3; ++host) line.link_both_ways(host, host + 1, kRate);
  const Outcome outcome = simulate_one(line, job(collective::ring_all_reduce(4), 1e6));
  expect_near(outcome.seconds, 1.5e6 / kRate);
  for (const LinkUse& link : outcome.links) expect_near(link.bytes, 1.5e6);
}

TEST(RunProgram, tells_the_bytes_of_links_and_the_busiest) {
  topo::Topology topology = star(4, kRate);
  topology.links[5].rate = kRate / 4;  // to host 2
  const Outcome outcome = simulate_one(topology, job(collective::ring_all_reduce(4), 1e6));
  expect_near(outcome.seconds, 4 * 1.5e6 / kRate, 0.3);
  EXPECT_EQ(outcome.bottleneck, 5U);
  EXPECT_GT(outcome.links[5].busy, 0.8);
  for (const LinkUse& link : outcome.links) expect_near(link.bytes, 1.5e6);
  EXPECT_EQ(*std::ranges::max_element(outcome.jobs[0].finished), outcome.seconds);
}

// Both want all of the link: the urgent one is as quick as alone, together they take their sum.
TEST(RunProgram, the_urgent_job_does_not_feel_the_other) {
  const topo::Topology topology = star(4, kRate);
  std::vector<Job> jobs{job(collective::ring_all_reduce(4), 8e6), job(collective::ring_all_reduce(4), 8e6)};
  const double alone = simulate_one(topology, jobs[0]).seconds;
  jobs[0].priority = 1;
  const Outcome outcome = simulate(topology, jobs, {}, Costs::links_only());
  expect_near(outcome.jobs[1].end, alone);
  expect_near(outcome.jobs[0].end, 2 * alone);
  jobs[0].priority = 0;
  const Outcome equal = simulate(topology, jobs, {}, Costs::links_only());
  expect_near(equal.jobs[0].end, 2 * alone, 0.05);
  expect_near(equal.jobs[1].end, 2 * alone, 0.05);
}

TEST(RunProgram, jobs_follow_each_other_host_by_host) {
  const topo::Topology topology = star(4, kRate);
  std::vector<Job> jobs(3, job(collective::ring_all_reduce(4), 1e6));
  const double alone = simulate_one(topology, jobs[0]).seconds;
  jobs[1].after = {{0}};
  jobs[1].start = 0.25;
  jobs[2].after = {{0}, {1}};
  const Outcome outcome = simulate(topology, jobs, {}, Costs::links_only());
  expect_near(outcome.jobs[0].end, alone);
  expect_near(outcome.jobs[1].end, 2 * alone + 0.25);
  expect_near(outcome.seconds, 3 * alone + 0.25);
}

TEST(RunProgram, others_traffic_takes_its_share) {
  const topo::Topology topology = star(2, kRate);
  const Job one = job(collective::ring_all_reduce(2), 10e6);  // 10e6 bytes each way
  const double endless = std::numeric_limits<double>::infinity();
  std::vector<Transfer> transfers{{0, 1, endless, 0, 0, endless}};
  expect_near(simulate(topology, std::span(&one, 1), transfers, Costs::links_only()).seconds, 2 * 10e6 / kRate, 0.02);
  transfers[0].rate = kRate / 4;
  expect_near(simulate(topology, std::span(&one, 1), transfers, Costs::links_only()).seconds, 10e6 / (0.75 * kRate), 0.02);
  transfers[0] = {0, 1, 1e6, 0.5, 0, endless};
  const Outcome alone = simulate(star(2, kRate, 2ms), {}, transfers, Costs::links_only());
  expect_near(alone.seconds, 0.5 + 1e6 / kRate + 0.002);
}

TEST(RunProgram, every_builder_runs_to_its_end) {
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                                Collective::reduce, Collective::gather, Collective::scatter, Collective::all_to_all}) {
    for (const std::string& name : collective::builder_names(kind)) {
      for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 8U}) {
        const collective::Program program = collective::build(kind, name, ranks);
        for (const double bytes : {0.0, 1.0, ranks - 1.0, 7919.0, 4e6}) {
          const Job one = job(program, bytes);
          const Outcome outcome = simulate_one(star(ranks, kRate), one, Costs{});
          double sent = 0, carried = 0;
          for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            const auto layout = collective::Layout::even(program, rank, one.elements);
            sent += static_cast<double>(collective::elements_sent(program, layout, rank));
          }
          for (const LinkUse& link : outcome.links) carried += link.bytes / 2;
          EXPECT_NEAR(carried, sent, 1e-6 * sent) << name << " of " << ranks;
        }
      }
    }
  }
}

std::string refusal_of_job(const topo::Topology& topology, const Job& one) {
  return shoal::refusal([&] { simulate_one(topology, one); });
}

TEST(RunProgram, what_cannot_run_is_named) {
  const topo::Topology topology = star(4, kRate);
  Job one = job(collective::ring_all_reduce(4), 1e6);
  one.hosts[1] = 9;
  EXPECT_EQ(refusal_of_job(topology, one), "job 0 (ring): host 9 of 4");
  one.hosts[1] = 2;
  EXPECT_EQ(refusal_of_job(topology, one), "job 0 (ring): a host has two ranks");
  one.hosts.pop_back();
  EXPECT_EQ(refusal_of_job(topology, one), "job 0 (ring): 3 hosts for 4 ranks");
  topo::Topology relative = topology;
  relative.relative = true;
  EXPECT_EQ(refusal_of_job(relative, job(collective::ring_all_reduce(4), 1e6)), "net: its rates are multiples of a link's, not bytes/s");

  collective::Program program = collective::ring_all_reduce(2);  // each waits for the other's result before it sends its own
  program.lanes[0][0][0].ops[0].after = {{1, 0, 0}};
  program.lanes[1][0][0].ops[0].after = {{1, 0, 0}};
  EXPECT_EQ(refusal_of_job(topology, job(program, 1e6)), "program ring: stands still after 0 s: rank 0, lane 0, op 0, iteration 0");
}

}  // namespace
}  // namespace shoal::sim
