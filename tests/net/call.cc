// Waiting on a loop: what it answers comes back, and a loop that does not answer holds nobody for ever. On a scripted
// network, whose clock only moves while somebody waits.
#include "shoal/net/call.h"

#include <gtest/gtest.h>

#include <string>

#include "shoal/net/inproc.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

TEST(Call, what_the_function_returns_comes_back) {
  InprocJob job(2, {});
  Transport& member = job.member(1);
  EXPECT_EQ(call(member, [&member] { return member.on_loop() ? std::string("on the loop") : std::string(); }), "on the loop");
  bool ran = false;
  EXPECT_TRUE(call(member, [&ran] { ran = true; }));
  EXPECT_TRUE(ran);
}

TEST(Call, a_member_whose_loop_stands_still_is_left_at_the_bound) {
  InprocJob job(2, {});
  Transport& member = job.member(0);
  job.freeze(0);
  EXPECT_FALSE(call(member, [] {}));
  EXPECT_EQ(call(member, [] { return 7; }), std::nullopt);
  EXPECT_EQ(member.now() - Instant{}, 2 * kLoopAnswers);
}

TEST(Call, what_is_told_later_is_waited_for_within_the_patience) {
  InprocJob job(2, {});
  Transport& member = job.member(0);
  const auto tell_after = [&member](Nanoseconds delay) {
    return [&member, delay](const auto& tell) { member.at(member.now() + delay, [tell] { tell(5); }); };
  };
  EXPECT_EQ(ask<int>(member, 3s, tell_after(2500ms)), 5);
  EXPECT_EQ(member.now() - Instant{}, 2500ms);
  EXPECT_EQ(ask<int>(member, 3s, tell_after(3500ms)), std::nullopt);
  EXPECT_EQ(member.now() - Instant{}, 5500ms);
  // What comes after the patience finds its place, although nobody looks there.
  EXPECT_EQ(ask<int>(member, 3s, tell_after(2s)), 5);
}

}  // namespace
}  // namespace shoal::net
