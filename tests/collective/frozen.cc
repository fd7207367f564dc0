// One thread of a member stands still, and the rest of the process lives: a deadlock, a debugger, a device that does not answer. Goal: no call of the
// others lasts longer than its deadline and a little, whichever thread it is. A member has two: whoever runs the loop, which adds as well, and the
// caller. SHOAL_FAULTS sets how many of each.
#include <algorithm>
#include <iostream>

#include "tests/collective/adding_processes.h"
#include "tests/from_environment.h"

namespace shoal::collective {
namespace {

using namespace std::chrono_literals;

constexpr double kCallsReturnIn = 10;  // seconds: with a deadline of one, on a machine that is busy with other things

class FrozenThread : public testing::TestWithParam<std::vector<std::string>> {};

// The others go on without the member if all of it is silent. If it is heard and only does not add, every sum is given up by all when its deadline has
// passed: whether to wait for it is the caller's to say.
TEST_P(FrozenThread, no_call_of_the_others_waits_longer_than_its_deadline) {
  const std::uint64_t faults = from_environment("SHOAL_FAULTS", 2);
  double longest = 0;
  std::uint64_t without = 0, late = 0, unstruck = 0;  // the last: of a busy machine, on which a member may not be heard for half a second
  for (std::uint64_t i = 0; i < faults && !HasFailure(); ++i) {
    Adding script{4, i % 4 < 2 ? "ring" : "direct", 1s, net::quick_health()};
    script.join.on_peer_lost = net::OnPeerLost::shrink;
    script.join.shared_memory = i % 2 == 1;
    const auto victim = static_cast<net::Rank>(i % script.members);
    SCOPED_TRACE("rank " + std::to_string(victim));
    AddingProcesses processes(script);
    std::this_thread::sleep_for(100ms + 3ms * (i % 7));  // at any moment of a sum
    for (const std::string& role : GetParam()) processes.freeze(victim, role);
    std::vector<bool> silenced(script.members);
    silenced[victim] = true;
    const auto ends = processes.end(silenced);
    expect_one_history(ends);
    for (net::Rank rank = 0; rank < script.members; ++rank) {
      if (rank == victim) continue;
      EXPECT_LE(ends[rank].longest, kCallsReturnIn);
      longest = std::max(longest, ends[rank].longest);
      ++(ends[rank].fate == "late" ? late : ends[rank].fate == "ended" ? without : unstruck);
    }
    EXPECT_TRUE(std::ranges::any_of(ends, [](const AddingEnd& end) { return end.fate == "ended" || end.fate == "late"; })) << "nobody is left";
  }
  std::cout << "the longest call " << longest << " s; " << without << " members went on, sums of " << late << " were given up at their deadline of 1 s, "
            << unstruck << " members were given up that nothing had struck\n";
}

INSTANTIATE_TEST_SUITE_P(Roles, FrozenThread,
                         testing::Values(std::vector<std::string>{"io"}, std::vector<std::string>{"caller in a call"},
                                         std::vector<std::string>{"caller between calls"}, std::vector<std::string>{"caller between calls", "io"}),
                         [](const auto& tested) {
                           std::string name;
                           for (const std::string& role : tested.param) name += (name.empty() ? "" : "_and_") + role;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace shoal::collective
