// Plans' and tables' traffic in simulated time, against closed forms.
#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "shoal/sim/plan_traffic.h"
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

// Two units: the first to be produced is the last to be needed.
PlanTraffic plan() {
  PlanTraffic traffic;
  traffic.plan.ranks = 4;
  traffic.plan.forward_seconds = 0.05;
  traffic.plan.backward_seconds = 0.1;
  traffic.plan.step_seconds = 0.02;
  traffic.plan.tensors.resize(2);
  for (exchange::TensorSpec& tensor : traffic.plan.tensors) tensor.count = 2'500'000;
  traffic.plan.tensors[0].backward_at = 0.04;
  traffic.plan.tensors[1].backward_at = 0.1;
  traffic.plan.units.resize(2);
  traffic.plan.units[0] = {.tensors = {0}, .way = "ring", .priority = 1};
  traffic.plan.units[1] = {.tensors = {1}, .way = "ring", .priority = 0};
  traffic.hosts = {0, 1, 2, 3};
  return traffic;
}

TEST(PlanTraffic, the_urgent_unit_goes_first_and_the_iteration_ends_with_the_last) {
  std::vector<Job> jobs;
  PlanTraffic traffic = plan();
  traffic.iterations = 3;
  add_jobs(traffic, jobs);
  ASSERT_EQ(jobs.size(), 6U);
  const Outcome outcome = simulate(star(4, kRate), jobs, {}, Costs::links_only());
  const double unit = 1.5 * 1e7 / kRate;  // 0.12 s
  expect_near(outcome.jobs[1].end, 0.15 + unit);
  expect_near(outcome.jobs[0].end, 0.09 + 2 * unit);
  expect_near(outcome.seconds, 3 * (0.09 + 2 * unit) + 2 * 0.02);
}

TEST(PlanTraffic, a_way_that_is_no_all_reduce_is_refused) {
  PlanTraffic traffic = plan();
  traffic.plan.units[1].way = "factors";
  traffic.plan.tensors[1].name = "fc1.weight";
  std::vector<Job> jobs;
  try {
    add_jobs(traffic, jobs);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_STREQ(error.what(), "plan: fc1.weight goes by \"factors\", which is not simulated (plans of all-reduces are: shoal plan --plan ring)");
  }
}

}  // namespace
}  // namespace shoal::sim
