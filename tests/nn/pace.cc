// What an iteration usually takes: without the first, and without a pause in between.
#include <gtest/gtest.h>

#include <array>

#include "shoal/nn/pace.h"
#include "shoal/nn/paces.h"

namespace shoal::nn {
namespace {

using namespace std::chrono_literals;

TEST(Pace, is_of_usual_iterations) {
  Pace pace;
  Instant now{1s};
  double waited = 0, processor = 3;
  for (int iteration = 0; iteration < 40; ++iteration) {
    pace.iteration_begins(now, waited, processor);
    pace.placing_took(0.01);                       // before the pass
    pace.forward_begins();
    pace.placing_took(0.015);                      // behind a gate in it
    pace.forward_took(iteration == 0 ? 9 : 0.115);  // everything warms up
    pace.backward_took(iteration == 0 ? 9 : 0.2, iteration == 0 ? 9 : 0.4, std::array{iteration % 2 == 0 ? 0.1 : 0.3, -1.0});
    pace.placing_took(0.005);
    now += iteration == 0 ? Nanoseconds(20s) : Nanoseconds(600ms);
    waited += iteration == 0 ? 0 : 0.25;           // for others, in the passes or between them
    processor += iteration == 0 ? 18 : 0.5;
    if (iteration % 3 == 2) now += 20s, processor += 40;  // a validation
    if (iteration == 0) continue;
    EXPECT_NEAR(pace.usual().forward, 0.1, 1e-9);
    EXPECT_NEAR(pace.usual().backward, 0.2, 1e-9);
    EXPECT_EQ(pace.usual_of_gradients().at(1), 1) << "it comes behind the pass";
  }
  EXPECT_NEAR(pace.usual().between, 0.05, 1e-6);
  EXPECT_NEAR(pace.usual().processor, 0.5, 1e-9);
  EXPECT_NEAR(pace.usual().placing, 0.03, 1e-9);
  EXPECT_NEAR(pace.usual().waited, 0.25, 1e-9);
  EXPECT_NEAR(pace.usual_of_gradients().at(0), 0.75, 1e-9) << "of 15: eight times 0.3 of 0.4, seven times 0.1";
}

// The first iteration makes what no other does. Behind the second one's step the pace is the second's, whose end is then no news.
TEST(Pace, behind_the_second_step_it_is_that_of_the_second_iteration) {
  Pace pace;
  const auto iteration = [&](Instant now, double waited, double processor, double passes) {
    pace.iteration_begins(now, waited, processor);
    pace.forward_took(passes);
    pace.backward_took(passes, passes, {});
  };
  iteration(Instant{1s}, 0, 0, 2);
  pace.step_ends(Instant{11s}, 3, 9);
  EXPECT_EQ(pace.usual().between, 3) << "no other is known";
  iteration(Instant{12s}, 3, 9, 0.5);
  pace.step_ends(Instant{15s}, 4, 10.5);
  EXPECT_EQ(pace.usual().between, 1);
  EXPECT_EQ(pace.usual().processor, 1.5);
  iteration(Instant{20s}, 4, 12, 0.5);
  EXPECT_EQ(pace.usual().between, 1);
  iteration(Instant{23s}, 4, 14, 0.5);
  pace.step_ends(Instant{100s}, 4, 99);
  EXPECT_EQ(pace.usual().between, 1.5) << "1 and 2: of those that are known whole, no more";
}

using Cores = std::vector<int>;

Machine machine_of(const std::vector<Cores>& members, const exchange::Took& took = {}) {
  Machine machine;
  for (const auto& cores : members) machine.hears({.took = took, .machine = "m", .cores = cores});
  return machine;
}

TEST(Pace, members_of_a_machine_share_the_cores_that_they_may_run_on) {
  const Cores both{0, 1}, first{0}, second{1};
  EXPECT_EQ(machine_of({both, both, both, both}).members_a_core(), 2);
  EXPECT_EQ(machine_of({first, second, first, second}).members_a_core(), 2) << "each bound to a core";
  EXPECT_EQ(machine_of({both}).members_a_core(), 0.5);
  EXPECT_EQ(machine_of({both}).operation_seconds(4), 0) << "one of two cores is left";
  const auto pair = machine_of({both, both});
  EXPECT_EQ(pair.operation_seconds(1), 0) << "nobody to send to";
  EXPECT_DOUBLE_EQ(pair.operation_seconds(4), 3 * pair.operation_seconds(2)) << "by messages";
  EXPECT_GT(pair.operation_seconds(4), 0);
  Paces alone, beside;
  const auto here = MemberPace::here({}, 0, 0, false);
  alone.hears(here.line());
  EXPECT_EQ(alone.members_a_core(here.machine), 1.0 / static_cast<double>(usable_cores().size()));
  for (const std::string machine : {"m", "mm", "mm"}) beside.hears(MemberPace{.machine = machine, .cores = both}.line());
  EXPECT_EQ(beside.members_a_core("m"), 0.5) << "others have machines of their own";
}

TEST(Pace, links_pack_where_any_members_do) {
  Paces paces;
  for (const bool packs : {false, true, false}) {
    paces.hears(MemberPace{.links_pack = packs, .machine = "m", .cores = {0, 1}}.line());
    if (!packs) continue;
    EXPECT_TRUE(paces.links_pack());
    EXPECT_EQ(paces.members_a_core("m"), 1);
  }
  EXPECT_TRUE(paces.links_pack());
  EXPECT_FALSE(Paces().links_pack());
}

// Goal: operations cost members nothing that wait, for whatever it be, while they seem to compute. Method: four on two cores, by what they say.
TEST(Pace, members_that_wait_leave_a_core_idle) {
  const auto told = [](double computing, double processor, std::size_t members = 4) {
    return machine_of(std::vector<Cores>(members, {0, 1}), {.forward = computing, .processor = processor});
  };
  const auto operation = [&](double computing, double processor) { return told(computing, processor).operation_seconds(4); };
  EXPECT_EQ(operation(1, 0.4), 0) << "two cores are busy for four fifths of the time";
  EXPECT_GT(operation(1, 0.5), 0);
  EXPECT_EQ(operation(1, 0), operation(1, 0.5)) << "nobody says";
  EXPECT_TRUE(told(1, 0.5).crowded());
  EXPECT_FALSE(told(1, 0.4).crowded());
  EXPECT_FALSE(told(1, 1, 2).crowded()) << "a core each";
  EXPECT_DOUBLE_EQ(told(1, 0.5).parameter_seconds(), 80e-6) << "two members a core";
  EXPECT_DOUBLE_EQ(told(1, 0.4).parameter_seconds(), 20e-6);
  EXPECT_DOUBLE_EQ(told(1, 1, 2).parameter_seconds(), 20e-6);
}

// The same where what they have to do takes cores for less than half of an iteration, most of which passes on the links.
TEST(Pace, members_that_wait_for_the_network_leave_a_core_idle) {
  const auto crowded = [](double waited) {
    Paces paces;
    const MemberPace member{.took = {.forward = 1, .processor = 0.8, .waited = waited}, .machine = "m", .cores = {0, 1}};
    for (int i = 0; i < 4; ++i) paces.hears(member.line());
    return paces.compute().crowded;
  };
  EXPECT_TRUE(crowded(0));
  EXPECT_TRUE(crowded(2));
  EXPECT_FALSE(crowded(2.5)) << "two cores are busy for 1.6 s of 3.5";
}

// Goal: who has the most to do decides, in each iteration another one. Method: three members, of which all hear what the slowest took.
TEST(Pace, an_iteration_is_as_long_as_its_slowest_member) {
  constexpr double kPasses[3] = {1, 2, 6};
  std::array<Pace, 3> paces;
  Instant now{1s};
  for (std::size_t iteration = 0; iteration < 30; ++iteration) {
    exchange::Took slowest;
    for (auto& pace : paces) {
      pace.iteration_begins(now, 0, 0);  // as if nothing lay between passes
      if (pace.latest().seconds() >= slowest.seconds()) slowest = pace.latest();
    }
    for (std::size_t member = 0; member < 3; ++member) {
      const double passes = kPasses[(member + iteration) % 3];
      paces[member].forward_took(passes / 4);
      paces[member].backward_took(passes * 3 / 4, passes, {});
      paces[member].slowest_took({slowest.forward, slowest.backward, slowest.backward / 10, 12});
    }
    now += 1ns;
  }
  for (auto& pace : paces) {
    for (int iteration = 0; iteration < 16; ++iteration) pace.slowest_took({.between = 9});  // nobody has told
    EXPECT_EQ(pace.usual().forward + pace.usual().backward, 2);
    const auto slowest = pace.usual_of_slowest();
    EXPECT_EQ(slowest.forward, 1.5);
    EXPECT_EQ(slowest.backward, 4.5);
    EXPECT_EQ(slowest.between, 0.45);
    EXPECT_EQ(slowest.processor, 12);
  }
}

TEST(Pace, a_plan_is_chosen_by_the_mean_of_the_slowest_machine) {
  Paces paces;
  const auto hear = [&](const std::string& machine, const Cores& cores, const exchange::Took& took, double a_flop) {
    paces.hears(MemberPace{.took = took, .a_flop = a_flop, .own_flop = 2 * a_flop, .machine = machine, .cores = cores}.line());
  };
  for (const double forward : {1.0, 3.0}) hear("m", {0, 1}, {forward, 2 * forward, 0.5}, 1e-9);
  EXPECT_EQ(paces.compute().forward_seconds, 2) << "members of a machine have its cores in turns";
  EXPECT_FALSE(paces.compute().crowded) << "a core each";
  hear("m", {0, 1}, {}, 0);  // out of data
  EXPECT_EQ(paces.compute().forward_seconds, 2);
  hear("slow", {0}, {3, 5, 0.25}, 0);
  hear("fast", {0, 1}, {0.5, 1, 4}, 2e-9);
  auto compute = paces.compute();
  EXPECT_EQ(compute.forward_seconds, 3);
  EXPECT_EQ(compute.backward_seconds, 5);
  EXPECT_EQ(compute.step_seconds, 0.25);
  EXPECT_DOUBLE_EQ(compute.multiply_rate, 0.5e9) << "all multiply others' rows";
  EXPECT_DOUBLE_EQ(compute.own_rate, 0.25e9);
  EXPECT_TRUE(compute.crowded) << "three members on two cores";
  EXPECT_DOUBLE_EQ(compute.parameter_seconds, 60e-6) << "theirs";
  EXPECT_DOUBLE_EQ(compute.operation_seconds, 1.5 * 2 * 4 * 30e-6) << "by messages of all machines";
  hear("late", {0}, {1, 2, 9}, 0);
  compute = paces.compute();
  EXPECT_EQ(compute.forward_seconds, 1) << "its data come late";
  EXPECT_EQ(compute.step_seconds, 9);
  EXPECT_EQ(paces.members_a_core("m"), 1.5);
  EXPECT_EQ(paces.members_a_core("serves"), 0);
}

TEST(Pace, follows_what_has_changed_for_good) {
  Pace pace;
  for (int iteration = 0; iteration < 30; ++iteration) pace.backward_took(iteration < 15 ? 0.1 : 0.3, 1, {});
  EXPECT_EQ(pace.usual().backward, 0.3);
}

TEST(Pace, of_one_iteration_is_that_one) {
  Pace pace;
  EXPECT_EQ(pace.usual().forward, 0);
  pace.forward_took(0.5);
  EXPECT_EQ(pace.usual().forward, 0.5);
}

}  // namespace
}  // namespace shoal::nn
