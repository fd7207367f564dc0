// What an iteration usually takes: without the first, and without a pause in between.
#include <gtest/gtest.h>

#include <array>

#include "shoal/nn/pace.h"
#include "shoal/nn/paces.h"
#include "shoal/nn/shared_cores.h"

namespace shoal::nn {
namespace {

using namespace std::chrono_literals;

TEST(Pace, is_of_usual_iterations) {
  Pace pace;
  Instant now{1s};
  double waited = 0, processor = 3;
  for (int iteration = 0; iteration < 40; ++iteration) {
    pace.iteration_begins(now, waited, processor);
    pace.forward_took(iteration == 0 ? 9 : 0.1);   // everything warms up
    pace.backward_took(iteration == 0 ? 9 : 0.2);
    now += iteration == 0 ? Nanoseconds(20s) : Nanoseconds(600ms);
    waited += iteration == 0 ? 0 : 0.25;           // for others, in the passes or between them
    processor += iteration == 0 ? 18 : 0.5;
    if (iteration % 3 == 2) now += 20s, processor += 40;  // a validation
    if (iteration == 0) continue;
    EXPECT_NEAR(pace.forward(), 0.1, 1e-9);
    EXPECT_NEAR(pace.backward(), 0.2, 1e-9);
  }
  EXPECT_NEAR(pace.between(), 0.05, 1e-6);
  EXPECT_NEAR(pace.processor(), 0.5, 1e-9);
}

TEST(Pace, members_of_a_machine_share_the_cores_that_they_may_run_on) {
  const auto shared = [](const std::vector<std::string>& all) {
    SharedCores cores(all.front());
    for (const std::string& member : all) cores.hears(member);
    return cores.members_a_core();
  };
  const auto both = SharedCores::of("m", {0, 1}), first = SharedCores::of("m", {0}), second = SharedCores::of("m", {1}), far = SharedCores::of("mm", {0, 1});
  EXPECT_EQ(shared({both, both, both, both}), 2);
  EXPECT_EQ(shared({first, second, first, second}), 2) << "each bound to a core";
  EXPECT_EQ(shared({both, far, far}), 0.5) << "others have machines of their own";
  EXPECT_EQ(shared({SharedCores::own()}), 1.0 / static_cast<double>(usable_cores().size()));
  SharedCores pair(both);
  pair.hears(both);
  EXPECT_EQ(pair.operation_seconds(4), 0) << "one of two cores is left";
  pair.hears(both);
  EXPECT_EQ(pair.operation_seconds(1), 0) << "nobody to send to";
  EXPECT_DOUBLE_EQ(pair.operation_seconds(4), 3 * pair.operation_seconds(2)) << "by messages";
}

// Goal: operations cost members nothing that wait, for whatever it be, while they seem to compute. Method: four on two cores, by what they say.
TEST(Pace, members_that_wait_leave_a_core_idle) {
  const auto word = SharedCores::of("m", {0, 1});
  const auto told = [&](double computing, double processor, int members = 4) {
    SharedCores some(word);
    for (int member = 0; member < members; ++member) some.hears(word, computing, processor);
    return some;
  };
  const auto operation = [&](double computing, double processor) { return told(computing, processor).operation_seconds(4); };
  EXPECT_EQ(operation(1, 0.4), 0) << "two cores are busy for four fifths of the time";
  EXPECT_GT(operation(1, 0.5), 0);
  EXPECT_EQ(operation(1, 0), operation(1, 0.5)) << "nobody says";
  EXPECT_TRUE(told(1, 0.5).crowded());
  EXPECT_FALSE(told(1, 0.4).crowded());
  EXPECT_FALSE(told(1, 1, 2).crowded()) << "a core each";
}

// Goal: who has the most to do decides, in each iteration another one. Method: three members, told as the roll call does.
TEST(Pace, an_iteration_is_as_long_as_its_slowest_member) {
  constexpr double kPasses[3] = {1, 2, 6};
  std::array<Pace, 3> paces;
  Instant now{1s};
  for (std::size_t iteration = 0; iteration < 30; ++iteration) {
    double slowest = 0;
    for (auto& pace : paces) {
      pace.iteration_begins(now, 0, 0);
      slowest = std::max(slowest, pace.latest_passes());
    }
    EXPECT_EQ(slowest, iteration == 0 ? 0 : 6) << "no iteration is over yet";
    for (std::size_t member = 0; member < 3; ++member) {
      const double passes = kPasses[(member + iteration) % 3];
      paces[member].forward_took(passes / 4);
      paces[member].backward_took(passes * 3 / 4);
      paces[member].slowest_took(slowest, 0.5);
    }
    now += 10s;
  }
  for (const auto& pace : paces) {
    EXPECT_EQ(pace.forward() + pace.backward(), 2);
    EXPECT_EQ(pace.slowest_passes(), 6);
    EXPECT_EQ(pace.slowest_between(), 0.5);
  }
}

TEST(Pace, a_plan_is_chosen_by_the_mean_of_the_slowest_machine) {
  const auto here = SharedCores::of("m", {0, 1}), slow = SharedCores::of("slow", {0}), fast = SharedCores::of("fast", {0, 1});
  Paces paces;
  for (const double forward : {1.0, 3.0}) paces.hears(Paces::told({forward, 2 * forward, 0.5, 0, 1e-9, here}));
  EXPECT_EQ(paces.of_slowest().forward_seconds, 2) << "members of a machine have its cores in turns";
  paces.hears(Paces::told({3, 5, 0.25, 0, 0.5e-9, slow}));
  paces.hears(Paces::told({0.5, 1, 4, 0, 0, fast}));
  const auto compute = paces.of_slowest();
  EXPECT_EQ(compute.forward_seconds, 3);
  EXPECT_EQ(compute.backward_seconds, 5);
  EXPECT_EQ(compute.step_seconds, 0.25);
  EXPECT_DOUBLE_EQ(compute.multiply_rate, 2e9);
  EXPECT_FALSE(compute.crowded) << "a core each";
  EXPECT_EQ(paces.members_a_core(here), 1);
  EXPECT_EQ(paces.members_a_core(SharedCores::of("serves", {0})), 0);
}

TEST(Pace, follows_what_has_changed_for_good) {
  Pace pace;
  for (int iteration = 0; iteration < 30; ++iteration) pace.backward_took(iteration < 15 ? 0.1 : 0.3);
  EXPECT_EQ(pace.backward(), 0.3);
}

TEST(Pace, of_one_iteration_is_that_one) {
  Pace pace;
  EXPECT_EQ(pace.forward(), 0);
  pace.forward_took(0.5);
  EXPECT_EQ(pace.forward(), 0.5);
}

}  // namespace
}  // namespace shoal::nn
