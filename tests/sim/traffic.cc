// Tables' traffic in simulated time, against closed forms.
#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "shoal/sim/table_traffic.h"
#include "tests/sim/networks.h"

namespace shoal::sim {
namespace {

TableTraffic table() {
  TableTraffic traffic;
  traffic.workers = {0, 1, 2, 3};
  traffic.shards = {4, 5};
  traffic.clocks = 5;
  traffic.pulled = 4'000'000;
  traffic.pushed = 1'000'000;
  traffic.compute = 0.1;
  return traffic;
}

// Four workers' rows leave two shards: each sends what two workers pull, and receives what two push.
TEST(TableTraffic, a_clock_takes_its_pull_its_computing_and_its_push) {
  std::vector<Job> jobs;
  add_jobs(table(), jobs);
  const Outcome outcome = simulate(star(6, kRate), jobs, {}, Costs::links_only());
  expect_near(outcome.seconds, 5 * (2 * 4e6 / kRate + 0.1 + 2 * 1e6 / kRate));
}

// When worker 0's link is slow, others wait for it every clock, or only when they are too far ahead.
TEST(TableTraffic, staleness_hides_who_is_late) {
  topo::Topology topology = star(6, kRate);
  topology.links[1].rate = kRate / 20;  // to worker 0
  const auto others = [&](std::uint32_t staleness) {
    TableTraffic traffic = table();
    traffic.staleness = staleness;
    std::vector<Job> jobs;
    add_jobs(traffic, jobs);
    const Outcome outcome = simulate(topology, jobs, {}, Costs::links_only());
    EXPECT_GE(outcome.jobs.back().finished[0], 5 * (20 * 4e6 / kRate + 0.1 + 1e6 / kRate) * 0.999);
    return outcome.jobs.back().finished[1];
  };
  const double slow = 20 * 4e6 / kRate + 0.1 + 1e6 / kRate;
  EXPECT_GT(others(0), 4 * slow);
  EXPECT_LT(others(2), others(0) - slow);
  EXPECT_LT(others(4), slow * 1.5);
}

TEST(TableTraffic, needs_both_sides) {
  TableTraffic traffic = table();
  traffic.shards.clear();
  std::vector<Job> jobs;
  EXPECT_THROW(add_jobs(traffic, jobs), Error);
}

}  // namespace
}  // namespace shoal::sim
