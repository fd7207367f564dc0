// What an iteration usually takes: without the first, and without a pause in between.
#include <gtest/gtest.h>

#include "shoal/nn/pace.h"

namespace shoal::nn {
namespace {

using namespace std::chrono_literals;

TEST(Pace, is_of_usual_iterations) {
  Pace pace;
  Instant now{1s};
  double waited = 0;
  for (int iteration = 0; iteration < 40; ++iteration) {
    pace.iteration_begins(now, waited);
    pace.forward_took(iteration == 0 ? 9 : 0.1);   // everything warms up
    pace.backward_took(iteration == 0 ? 9 : 0.2);
    now += iteration == 0 ? Nanoseconds(20s) : Nanoseconds(600ms);
    waited += iteration == 0 ? 0 : 0.25;           // for others, in the passes or between them
    if (iteration % 3 == 2) now += 20s;            // a validation
    if (iteration == 0) continue;
    EXPECT_NEAR(pace.forward(), 0.1, 1e-9);
    EXPECT_NEAR(pace.backward(), 0.2, 1e-9);
  }
  EXPECT_NEAR(pace.between(), 0.05, 1e-6);
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
