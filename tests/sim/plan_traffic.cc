// Goal: a plan takes in simulated time what its ways' closed forms say, and puts on the links just the bytes of docs/ways.md. Method: an idle star of four
// equal links, on which nothing costs but bytes. Expected: equal to rounding, since all members of these ways send without a gap. Servers have more
// to add than workers: what they send back ends behind the last slice that each of the n workers has for them, which share their link: n slices later.
#include "shoal/sim/plan_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "shoal/exchange/plan_price.h"
#include "tests/refusal.h"
#include "tests/sim/networks.h"

namespace shoal::sim {
namespace {

constexpr std::uint64_t kPlanOutputs = 2048, kPlanInputs = 6144, kPlanRows = 32;
constexpr double kTensor = kPlanOutputs * kPlanInputs * 4.0;  // bytes

exchange::ExchangePlan plan_of(std::uint32_t ranks, const std::string& way) {
  exchange::ExchangePlan plan;
  plan.ranks = ranks;
  plan.link = {.alpha = 0, .rate = kRate, .add_rate = 1e30, .fan_in = kRate};
  plan.forward_seconds = 0.05;
  plan.backward_seconds = 0.1;
  plan.step_seconds = 0.02;
  plan.tensors = {{.name = "fc1.weight",
                   .count = kPlanOutputs * kPlanInputs,
                   .backward_at = 0.04,
                   .rows = kPlanRows,
                   .outputs = kPlanOutputs,
                   .forward_at = 0.01,
                   .width = kPlanInputs,
                   .touched = kPlanRows,
                   .divisible = true,
                   .by_element = true}};
  plan.units = {{.tensors = {0}, .way = way, .slice_bytes = 131072}};
  return plan;
}

Outcome simulate_plan(const exchange::ExchangePlan& plan, std::uint32_t iterations = 1) {
  PlanTraffic traffic{.plan = plan, .hosts = {}, .iterations = iterations};
  for (topo::Node host = 0; host < plan.ranks; ++host) traffic.hosts.push_back(host);
  std::vector<Job> jobs;
  add_jobs(traffic, jobs);
  return simulate(star(plan.ranks, kRate), jobs, {}, Costs::links_only());
}

constexpr double kRounding = 1e-9;  // seconds

// Of each host's link into the network (networks.h links both ways, host by host).
std::vector<double> sent_by_hosts(const exchange::ExchangePlan& plan) {
  const Outcome outcome = simulate_plan(plan);
  std::vector<double> sent;
  for (std::uint32_t host = 0; host < plan.ranks; ++host) sent.push_back(outcome.links[2 * host].bytes);
  return sent;
}

TEST(PlanTraffic, every_way_takes_its_closed_form) {
  for (const std::string way : {"direct", "ring", "halving_doubling", "factors", "rows", "bf16", "int8", "topk:0.01",
                                "powersgd:64", "servers:1", "owners", "hybrid:2", "hybrid:1"}) {
    const auto plan = plan_of(4, way);
    const exchange::Cost cost = exchange::cost_of(plan, plan.units[0]);
    const Outcome outcome = simulate_plan(plan);
    // Passes, until what is sent behind the mean: hybrid:1 sends nothing there, and its iteration ends with backward.
    double passes = cost.link > 0 ? 0.05 + 0.04 : 0.05 + 0.1;
    if (cost.after > 0) passes += plan.stepping_seconds();
    const double expected = passes + cost.between + cost.link + cost.after;
    const double slices = way == "servers:1" ? 3.0 * Costs::links_only().slice_bytes / kRate : 0;
    EXPECT_NEAR(outcome.seconds, expected, slices + kRounding) << way;
  }
}

// The formulas of docs/ways.md. Beside factors and rows each member says in 16 bytes to each other one how many they are, and in groups likewise.
TEST(PlanTraffic, every_way_sends_the_bytes_of_its_formula) {
  const double n = 4, k = kPlanRows, m = kPlanInputs, o = kPlanOutputs, s = kTensor, heads = 16;
  const std::map<std::string, double> formulas = {
      {"direct", 2 * (n - 1) / n * s},
      {"ring", 2 * (n - 1) / n * s},
      {"rows", (n - 1) * (k * (8 + m * 4) + heads)},
      {"bf16", (n - 1) / n * s},
      {"int8", 2 * (n - 1) / n * (s / 4 + s / 4 / 512 * 4)},
      {"powersgd:4", 2 * (n - 1) / n * 4 * 4 * (m + o)},
      {"topk:0.0009765625", (n - 1) * s * 2 / 1024},
      {"owners", 2 * (n - 1) / n * s},
      {"hybrid:1", 2 * (n - 1) * k * (m + o / n) * 4 + (n - 1) * heads},
      {"hybrid:2", 2 * k * (m + o / 2) * 4 + s / 2 + heads},  // (M-1) = 1, (G-1)/G S/M = S/4, twice
  };
  for (const auto& [way, bytes] : formulas) {
    for (const double sent : sent_by_hosts(plan_of(4, way))) EXPECT_NEAR(sent, bytes, 0.5) << way;
  }
  // At most 4 bytes a number: pairs as they are, in lines; how many lines is said before.
  for (const double sent : sent_by_hosts(plan_of(4, "factors")))
    EXPECT_NEAR(sent, (n - 1) * k * (m + o) * 4, (n - 1) * (k * (m + o) / 8 + 4096));
}

// 2 n (n-1) / (n² + K n - 2 K) S with n workers and K servers, by all; parts are rounded to elements.
TEST(PlanTraffic, servers_keep_all_links_equally_busy_and_idle_beside_all_reduces) {
  auto plan = plan_of(4, "servers:1");
  plan.servers = 1;
  for (const double sent : sent_by_hosts(plan)) EXPECT_NEAR(sent, 2.0 * 3 * 2 / (9 + 3 - 2) * kTensor, 4 * 8);
  plan.units[0].way = "ring";
  const auto sent = sent_by_hosts(plan);
  for (const std::uint32_t worker : {0u, 1u, 2u}) EXPECT_NEAR(sent[worker], 2.0 * 2 / 3 * kTensor, 16);
  EXPECT_EQ(sent[3], 0);
}

// Two units: the first to be produced is the last to be needed.
TEST(PlanTraffic, the_urgent_unit_goes_first_and_the_iteration_ends_with_the_last) {
  auto plan = plan_of(4, "ring");
  plan.tensors.assign(2, {.name = "w", .count = 2'500'000});
  plan.tensors[0].backward_at = 0.04;
  plan.tensors[1].backward_at = 0.1;
  plan.units = {{.tensors = {0}, .way = "ring", .priority = 1}, {.tensors = {1}, .way = "ring", .priority = 0}};
  const Outcome outcome = simulate_plan(plan, 3);
  ASSERT_EQ(outcome.jobs.size(), 6U);
  const double unit = 1.5 * 1e7 / kRate;  // 0.12 s
  expect_near(outcome.jobs[1].end, 0.15 + unit);
  expect_near(outcome.jobs[0].end, 0.09 + 2 * unit);
  expect_near(outcome.seconds, 3 * (0.09 + 2 * unit) + 2 * 0.02);
}

// What passes wait for delays what follows in them, in every iteration; the second one's forward pass waits for the first one's step.
TEST(PlanTraffic, a_divided_layer_stops_the_passes) {
  auto plan = plan_of(4, "hybrid:2");
  plan.tensors.push_back({.name = "fc2.weight", .count = 4, .first_use = 1, .backward_at = 0.02});
  plan.tensors.push_back({.name = "fc1.bias", .count = 4, .backward_at = 0.1});
  plan.units.insert(plan.units.begin(), {.tensors = {1}, .way = "ring"});
  plan.units.push_back({.tensors = {2}, .way = "ring"});
  const exchange::Cost cost = exchange::cost_of(plan, plan.units[1]);
  const Outcome outcome = simulate_plan(plan, 2);
  const auto legs = exchange::way_named("hybrid:2")->legs(exchange::load_of(plan, plan.units[1]));
  const double before = exchange::seconds(legs, exchange::Leg::When::forward, 4, plan.link);
  // Backward has passed fc2 when only the forward pass has been stopped; the bias comes when both have.
  const std::size_t jobs = outcome.jobs.size() / 2;  // of one iteration
  std::vector<double> begun;
  for (std::size_t i = 0; i < jobs; ++i) begun.push_back(outcome.jobs[i].begin);
  const auto is_there = [&](double at) {
    return std::ranges::any_of(begun, [&](double other) { return std::abs(other - at) < kRounding; });
  };
  EXPECT_TRUE(is_there(0.05 + 0.02 + before));
  EXPECT_TRUE(is_there(0.15 + cost.between));
  // The bias, four elements, crosses the strips on their way.
  const double iteration = 0.09 + cost.between + cost.link + 1.5 * 16 / kRate;
  EXPECT_NEAR(outcome.seconds, 2 * iteration + 0.02, kRounding);
}

TEST(PlanTraffic, what_a_way_computes_lies_between_iterations_until_it_has_been_measured) {
  auto plan = plan_of(4, "bf16");
  plan.link.add_rate = 1e9;
  const double computing = exchange::cost_of(plan, plan.units[0]).computing, unit = kTensor * 0.75 / kRate;
  ASSERT_GT(computing, 0.05);
  EXPECT_NEAR(simulate_plan(plan, 3).seconds, 3 * (0.09 + unit) + 2 * (0.02 + computing), kRounding);
  plan.settled = true;
  EXPECT_NEAR(simulate_plan(plan, 3).seconds, 3 * (0.09 + unit) + 2 * 0.02, kRounding);
}

// All come together behind four steps of 0.17 s each.
TEST(PlanTraffic, local_steps_send_nothing_until_a_round_is_over) {
  auto plan = plan_of(4, "ring");
  plan.choice = "local:4";
  const double unit = 1.5 * kTensor / kRate;
  EXPECT_EQ(simulate_plan(plan, 3).seconds, 0);
  EXPECT_NEAR(simulate_plan(plan, 9).seconds, 2 * (4 * 0.17 + unit), kRounding);
}

// Two fragments take turns four steps apart: hidden behind 0.68 s of steps, or waited for when the next one is due.
TEST(PlanTraffic, fragments_hide_behind_the_steps_until_the_next_ones_turn) {
  auto plan = plan_of(4, "ring");
  plan.choice = "diloco:8:2";
  plan.tensors.assign(2, plan.tensors[0]);
  plan.units = {{.tensors = {0}, .way = "ring"}, {.tensors = {1}, .way = "ring", .turn = 1}};
  for (const double share : {0.5, 2.0}) {
    for (auto& tensor : plan.tensors) tensor.count = static_cast<std::uint64_t>(share * kPlanInputs * kPlanOutputs);
    const double unit = 1.5 * share * kTensor / kRate, due = 4 * 0.17;  // 0.3 s, 1.2 s
    EXPECT_NEAR(simulate_plan(plan, 12).seconds, due + 2 * std::max(due, unit) + unit, kRounding) << share;
  }
}

TEST(PlanTraffic, what_cannot_be_simulated_is_one_line) {
  const auto refused = [](exchange::ExchangePlan plan, std::uint32_t hosts, Code code = Code::invalid_argument) {
    PlanTraffic traffic{.plan = std::move(plan), .hosts = std::vector<topo::Node>(hosts)};
    std::vector<Job> jobs;
    return refusal([&] { add_jobs(traffic, jobs); }, code);
  };
  EXPECT_EQ(refused(plan_of(4, "ring"), 3), "plan: 3 hosts for a plan of 4 members");
  EXPECT_EQ(refused(plan_of(4, "hybrid:3"), 4),
            "plan: hybrid:3 does not divide 4 members into equal groups of two or more (the number of groups divides that of "
            "members and is smaller)");
  auto served = plan_of(4, "ring");
  served.choice = "ps:ssp:2";
  EXPECT_EQ(refused(served, 4, Code::unsupported),
            "plan: its parameters are served by tables (ps:ssp:2), and nothing of it travels by a way (simulate [[table]]s: "
            "workers, shards, rows)");
}

}  // namespace
}  // namespace shoal::sim
