// The drawing of a program is read by people: it is compared whole.
#include "shoal/collective/show.h"

#include <gtest/gtest.h>

#include "shoal/collective/build.h"

namespace shoal::collective {
namespace {

TEST(Show, a_ring_shows_loops_waits_and_the_place_of_completion) {
  const std::string text = show(ring_all_reduce(4));
  EXPECT_EQ(text.substr(0, text.find("\nrank 1\n") + 1),
      R"(ring: all_reduce of 4 ranks, 4 chunks, adds rotated
rank 0
  lane 0     0       send            chunk 3       input -> rank 1
             1 2x    send            chunk 2-i     output -> rank 1                    after 1.0
             2       send            chunk 0       output -> rank 1                    after 1.1
             3 2x    send            chunk 3-i     output -> rank 1                    after 1.2
  lane 1     0 2x    receive_reduce  chunk 2-i     input + rank 3 lane 0 -> output
             1       receive_reduce  chunk 0       input + rank 3 lane 0 -> output     completes
             2 3x    receive         chunk 3-i     rank 3 lane 0 -> output
)");
}

TEST(Show, windows_roots_and_folds_are_named) {
  EXPECT_EQ(show(flat_reduce(3, 1)),
      R"(flat: reduce of 3 ranks, 1 chunk, root 1, adds left_fold
rank 0
  lane 0     0       send            chunk 0       input -> rank 1
rank 1
  lane 0     0       receive         chunk 0       rank 0 lane 0 -> window 0
  lane 1     0       receive         chunk 0       rank 2 lane 0 -> window 1
  lane 2     0       fold            chunk 0       window 0 + input + window 1 -> output  completes  after 0.0, 1.0
rank 2
  lane 0     0       send            chunk 0       input -> rank 1
)");
}

TEST(Show, waits_for_other_iterations_are_marked) {
  const std::string text = show(halving_doubling_all_reduce(5));
  EXPECT_NE(text.find("send            chunk 2+i     output -> rank 3                    after 2.0[i+2]\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace shoal::collective
